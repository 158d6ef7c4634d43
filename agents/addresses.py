"""Tell where a request comes from."""

from __future__ import annotations

from ipaddress import IPv6Address, ip_address

from django.conf import settings
from django.http import HttpRequest

UNKNOWN = "unknown"
#: One customer of a provider has all addresses of such a network.
NETWORK_BITS = 64


def address_of(request: HttpRequest) -> str:
    """Return the address a request is counted under: of IPv6, the network.

    X-Forwarded-For is believed with OM_BEHIND_PROXY alone, and of it only what the proxy itself
    put there, the last entry: the others are whatever the client sent.
    """
    given = request.META.get("REMOTE_ADDR", "")
    if settings.BEHIND_PROXY:
        given = request.headers.get("X-Forwarded-For", given).rpartition(",")[2]
    return _network(given.strip())


def _network(given: str) -> str:
    try:
        found = ip_address(given)
    except ValueError:
        return UNKNOWN
    if isinstance(found, IPv6Address):
        if found.ipv4_mapped:
            return str(found.ipv4_mapped)
        host_bits = 128 - NETWORK_BITS
        return str(IPv6Address(int(found) >> host_bits << host_bits))
    return str(found)
