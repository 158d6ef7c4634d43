"""What a team's server is set to: checked as Django checks it, and seen in its answers."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SERVER = {
    "DATABASE_URL": "postgresql://omsite@127.0.0.1/omsite",
    "REDIS_URL": "redis://127.0.0.1:6379/0",
    "SECRET_KEY": "kJ3v9-a-secret-that-is-long-and-of-many-different-characters-Qx7",
    "ALLOWED_HOSTS": "om.example.org",
    "OM_DISPATCHER": "celery",
    "OM_BEHIND_PROXY": "true",
    "OM_HTTPS": "true",
}
ASK = """
import json, django
django.setup()
from django.test import Client
client = Client(headers={"host": "om.example.org"})
plain = client.get("/healthz")
moved = client.get("/chat/")
page = client.get("/chat/", headers={"x-forwarded-proto": "https"})
other = Client(headers={"host": "evil.example", "x-forwarded-proto": "https"}).get("/chat/")
from django.conf import settings
print(json.dumps({
    "moved": [moved.status_code, moved.url], "other": other.status_code,
    "healthz": plain.status_code, "headers": dict(page.headers),
    "cookies": [settings.SESSION_COOKIE_SECURE, settings.SESSION_COOKIE_HTTPONLY,
                settings.SESSION_COOKIE_SAMESITE, settings.CSRF_COOKIE_SECURE],
}))
"""


def run(*words):
    environment = {**os.environ, **SERVER, "DJANGO_SETTINGS_MODULE": "omsite.settings"}
    return subprocess.run(
        [sys.executable, *words], cwd=ROOT, env=environment, capture_output=True, text=True
    )


def test_the_checks_for_deployment_find_nothing():
    ended = run("manage.py", "check", "--deploy", "--fail-level", "WARNING")
    assert ended.returncode == 0, ended.stderr


@pytest.fixture(scope="module")
def answers():
    return json.loads(run("-c", ASK).stdout.splitlines()[-1])


def test_pages_are_served_over_https_alone(answers):
    assert answers["moved"] == [301, "https://om.example.org/chat/"]
    assert answers["headers"]["Strict-Transport-Security"] == "max-age=31536000"
    assert answers["healthz"] == 200


def test_a_page_lets_nothing_foreign_in(answers):
    headers = answers["headers"]
    policy = headers["Content-Security-Policy"]
    assert "default-src 'none'" in policy
    assert "frame-ancestors 'none'" in policy
    assert "unsafe" not in policy
    assert headers["X-Frame-Options"] == "DENY"
    assert headers["X-Content-Type-Options"] == "nosniff"
    assert headers["Referrer-Policy"] == "same-origin"
    assert headers["Cross-Origin-Opener-Policy"] == "same-origin"


def test_cookies_go_over_https_and_no_script_reads_the_session(answers):
    assert answers["cookies"] == [True, True, "Lax", True]


def test_a_foreign_name_is_refused(answers):
    assert answers["other"] == 400
