"""Say which admin site is in use, and how it looks."""

from __future__ import annotations

from typing import Any

from django.contrib.admin.apps import AdminConfig
from django.templatetags.static import static
from django.urls import reverse_lazy


class StudioAdminConfig(AdminConfig):
    """Use the Studio's own admin site."""

    default_site = "agents.backstage.StudioSite"


def _item(title: str, icon: str, model: str) -> dict[str, Any]:
    return {"title": title, "icon": icon, "link": reverse_lazy(f"admin:{model}_changelist")}


UNFOLD: dict[str, Any] = {
    "SITE_TITLE": "OM Studio admin",
    "SITE_HEADER": "OM Studio",
    "SITE_SUBHEADER": "Administration",
    "SITE_URL": "/",
    "SITE_ICON": lambda request: static("mark.svg"),
    "SITE_FAVICONS": [
        {"rel": "icon", "type": "image/svg+xml", "href": lambda request: static("mark.svg")}
    ],
    "SHOW_HISTORY": False,
    "SHOW_VIEW_ON_SITE": False,
    "DASHBOARD_CALLBACK": "agents.admin.dashboard.dashboard",
    "STYLES": [lambda request: static("pages/admin.css")],
    "COLORS": {
        "primary": {
            "50": "239, 244, 255",
            "100": "219 230 254",
            "200": "191 211 254",
            "300": "138 180 255",
            "400": "96 145 250",
            "500": "59 113 246",
            "600": "29 78 216",
            "700": "26 68 190",
            "800": "30 58 150",
            "900": "30 53 120",
            "950": "20 34 74",
        }
    },
    "SIDEBAR": {
        "show_search": True,
        "navigation": [
            {
                "items": [
                    {"title": "Dashboard", "icon": "home", "link": reverse_lazy("admin:index")}
                ]
            },
            {
                "title": "Conversations",
                "separator": True,
                "items": [
                    _item("Resources", "group", "memory_resource"),
                    _item("Threads", "forum", "memory_thread"),
                    _item("Messages", "chat", "memory_message"),
                    _item("Files", "attach_file", "memory_media"),
                ],
            },
            {
                "title": "Memory",
                "separator": True,
                "items": [
                    _item("Records", "psychology", "memory_memoryrecord"),
                    _item("Lines", "notes", "memory_line"),
                    _item("Observations", "visibility", "memory_observation"),
                    _item("Revisions", "history", "memory_revision"),
                    _item("Sources", "account_tree", "memory_reflectionsource"),
                    _item("Cursors", "my_location", "memory_cursor"),
                ],
            },
            {
                "title": "Runs",
                "separator": True,
                "items": [
                    _item("Turns", "send", "agents_turn"),
                    _item("Requests", "upload", "agents_requestsnapshot"),
                    _item("Cycles", "autorenew", "memory_cycle"),
                    _item("Texts", "article", "memory_blob"),
                ],
            },
            {
                "title": "Configuration",
                "separator": True,
                "items": [
                    _item("Agents", "smart_toy", "agents_agentprofile"),
                    _item("Users", "person", "auth_user"),
                    _item("Groups", "badge", "auth_group"),
                    _item("Tokens", "key", "agents_token"),
                    _item("Audit", "policy", "agents_auditentry"),
                    _item("Failed sign-ins", "lock", "agents_signinfailure"),
                ],
            },
        ],
    },
}
