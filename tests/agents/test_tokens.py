from datetime import timedelta

import pytest
from django.utils import timezone

from agents.models import Token
from agents.tokens import LONGEST_NAME, MOST, OPENS_WITH, BadToken, hash_of, make, revoke, user_of

pytestmark = pytest.mark.django_db


def test_a_token_stands_for_who_made_it(ada):
    token, secret = make(ada, "  Backup script ")

    assert secret.startswith(OPENS_WITH)
    assert user_of(secret) == ada
    assert (token.name, token.opening) == ("Backup script", secret[:11])


def test_the_secret_is_stored_nowhere(ada):
    token, secret = make(ada, "Backup")

    row = Token.objects.filter(pk=token.pk).values().get()
    assert all(secret not in str(value) for value in row.values())
    assert row["hash"] == hash_of(secret)


def test_two_tokens_are_never_the_same(ada):
    secrets = {make(ada, "One")[1] for _ in range(20)}

    assert len(secrets) == 20


@pytest.mark.parametrize(
    "changes",
    [
        {"revoked_at": timezone.now()},
        {"expires_at": timezone.now() - timedelta(seconds=1)},
    ],
)
def test_a_token_that_ended_lets_nobody_in(ada, changes):
    token, secret = make(ada, "Backup")
    Token.objects.filter(pk=token.pk).update(**changes)

    assert user_of(secret) is None


def test_a_token_ends_with_its_persons_account(ada):
    _, secret = make(ada, "Backup")
    ada.is_active = False
    ada.save()

    assert user_of(secret) is None


@pytest.mark.parametrize("secret", ["", "om_", "om_wrong", "Bearer", "om_\udc80"])
def test_what_is_no_token_lets_nobody_in(ada, secret):
    make(ada, "Backup")

    assert user_of(secret) is None


def test_the_state_says_why_a_token_ended(ada):
    token, _ = make(ada, "Backup", lasts=timedelta(days=1))
    assert token.state == "active"

    token.expires_at = timezone.now()
    assert token.state == "expired"

    token.revoked_at = timezone.now()
    assert token.state == "revoked"


def test_use_is_noted_once_a_minute(ada):
    token, secret = make(ada, "Backup")
    user_of(secret)
    first = Token.objects.get(pk=token.pk).last_used_at
    user_of(secret)
    assert first is not None
    assert Token.objects.get(pk=token.pk).last_used_at == first

    Token.objects.filter(pk=token.pk).update(last_used_at=first - timedelta(minutes=2))
    user_of(secret)
    assert Token.objects.get(pk=token.pk).last_used_at > first


def test_only_its_person_revokes_a_token_and_once(ada, ben):
    token, secret = make(ada, "Backup")

    assert not revoke(ben, token.pk)
    assert user_of(secret) == ada
    assert revoke(ada, token.pk)
    assert not revoke(ada, token.pk)
    assert user_of(secret) is None


@pytest.mark.parametrize(
    ("name", "days", "sentence"),
    [
        (" ", None, "Give the token a name"),
        ("n" * (LONGEST_NAME + 1), None, "at most 100 fit"),
        ("Backup", 0, "lasts from 1 to 3650 days"),
        ("Backup", 3651, "lasts from 1 to 3650 days"),
    ],
)
def test_what_a_token_cannot_be_is_said(ada, name, days, sentence):
    lasts = None if days is None else timedelta(days=days)

    with pytest.raises(BadToken, match=sentence):
        make(ada, name, lasts=lasts)


def test_a_person_has_so_many_tokens_and_no_more(ada):
    made = [make(ada, "One")[0] for _ in range(MOST)]
    with pytest.raises(BadToken, match="Revoke one first"):
        make(ada, "One more")

    revoke(ada, made[0].pk)
    make(ada, "One more")
