"""Sign people in."""

from django.test import Client


def client_of(user):
    client = Client()
    client.force_login(user)
    return client
