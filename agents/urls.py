"""Route the pages."""

urlpatterns: list = []
