"""Find the pages of settings, and read them."""

import re


def url(thread):
    return f"/settings/{thread.pk}/"


def text_of(answer):
    return re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", answer.content.decode()))
