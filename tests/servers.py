"""Run the suite on PostgreSQL and Redis where they are, and say so where they are not."""

import os
import subprocess
import sys
from urllib.parse import urlsplit

import psycopg
import redis

DATABASE = os.environ.get("TEST_DATABASE_URL", "postgresql://postgres@127.0.0.1:5432/postgres")
REDIS = os.environ.get("TEST_REDIS_URL", "redis://127.0.0.1:6379/15")


def missing() -> str:
    """Name the server that does not answer, or nothing."""
    try:
        psycopg.connect(DATABASE, connect_timeout=3).close()
    except psycopg.OperationalError:
        return f"PostgreSQL at {urlsplit(DATABASE).hostname}"
    try:
        redis.Redis.from_url(REDIS, socket_connect_timeout=3).ping()
    except redis.RedisError:
        return f"Redis at {urlsplit(REDIS).hostname}"
    return ""


def main(arguments: list[str]) -> int:
    """Run pytest with these arguments on the servers; return its exit status."""
    absent = missing()
    if absent and os.environ.get("CI"):
        print(f"{absent} does not answer, and a check that is skipped is no check.")
        return 1
    if absent:
        print(f"Skipped the run on PostgreSQL and Redis: {absent} does not answer.")
        return 0
    environment = {
        **os.environ,
        "DATABASE_URL": DATABASE,
        "REDIS_URL": REDIS,
        "SECRET_KEY": "only for tests",
        "OM_HTTPS": "false",
        "TESTS_OF_SERVERS": "1",
    }
    print("The same suite on PostgreSQL and Redis:")
    return subprocess.call([sys.executable, "-m", "pytest", *arguments], env=environment)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
