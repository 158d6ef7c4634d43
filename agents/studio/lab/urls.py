"""Route the lab pages."""

from django.urls import path

from . import views

urlpatterns = [
    path("", views.labs, name="labs"),
    path("new", views.new, name="lab-new"),
    path("<uuid:lab_id>/", views.bench, name="lab"),
    path("<uuid:lab_id>/say", views.say, name="lab-say"),
    path("<uuid:lab_id>/broadcast", views.broadcast, name="lab-broadcast"),
    path("<uuid:lab_id>/do/<str:name>", views.do, name="lab-do"),
    path("<uuid:lab_id>/fill", views.fill_up, name="lab-fill"),
    path("<uuid:lab_id>/rest", views.rested, name="lab-rest"),
    path("<uuid:lab_id>/collide", views.collided, name="lab-collide"),
    path("<uuid:lab_id>/bleed", views.bled, name="lab-bleed"),
    path("<uuid:lab_id>/leak", views.leaked, name="lab-leak"),
    path("<uuid:lab_id>/switch", views.switched, name="lab-switch"),
    path("<uuid:lab_id>/facts", views.facts, name="lab-facts"),
    path("<uuid:lab_id>/run", views.run, name="lab-run"),
    path("<uuid:lab_id>/stop", views.stop, name="lab-stop"),
    path("<uuid:lab_id>/reset", views.reset, name="lab-reset"),
    path("<uuid:lab_id>/wipe", views.remove, name="lab-wipe"),
    path("<uuid:lab_id>/recording.yaml", views.recorded, name="lab-recording"),
]
