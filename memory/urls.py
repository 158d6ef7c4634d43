"""Route the memory partials."""

urlpatterns: list = []
