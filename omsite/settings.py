"""Configure Django. An empty environment is the embedded mode: one process, one file."""

import os
from datetime import timedelta
from pathlib import Path

import dj_database_url
from celery.schedules import crontab
from csp.constants import NONE, SELF

from .backstage import UNFOLD as UNFOLD
from .config import BASE, Config
from .logs import logging_config
from .redact import secrets_in

CONFIG = Config()

SECRET_KEY = CONFIG.secret()
DEBUG = CONFIG.debug
EMBEDDED = CONFIG.embedded
DEMO_USERS = ("ada", "ben", "admin")
ALLOWED_HOSTS = [host.strip() for host in CONFIG.allowed_hosts.split(",") if host.strip()]

INSTALLED_APPS = [
    "daphne",
    "unfold.apps.BasicAppConfig",
    "unfold.contrib.filters",
    "omsite.backstage.StudioAdminConfig",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "django.contrib.staticfiles",
    "channels",
    "csp",
    "django_htmx",
    "ninja",
    "template_partials",
    "memory",
    "agents",
    "agents.lab",
    "omsite",
]

MIDDLEWARE = [
    "django.middleware.security.SecurityMiddleware",
    "whitenoise.middleware.WhiteNoiseMiddleware",
    "csp.middleware.CSPMiddleware",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.auth.middleware.LoginRequiredMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
    "django_htmx.middleware.HtmxMiddleware",
]

ROOT_URLCONF = "omsite.urls"
ASGI_APPLICATION = "omsite.asgi.application"
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"

TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "DIRS": [BASE / "templates"],
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
            ],
        },
    }
]

SQLITE_OPTIONS = {
    "transaction_mode": "IMMEDIATE",
    "timeout": 20,
    "init_command": "PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL;",
}
POSTGRES_OPTIONS = {"pool": {"min_size": 1, "max_size": 8, "timeout": 5}}

DATABASES = {"default": dj_database_url.parse(CONFIG.database_url)}
if DATABASES["default"]["ENGINE"].endswith("sqlite3"):
    DATABASES["default"]["OPTIONS"] = SQLITE_OPTIONS
else:
    DATABASES["default"].setdefault("OPTIONS", {}).update(POSTGRES_OPTIONS)
    # Looked at when it leaves the pool: a restart of the server fails no request after it.
    DATABASES["default"]["CONN_HEALTH_CHECKS"] = True

CHANNEL_LAYERS = {
    "default": {
        "BACKEND": "channels_redis.pubsub.RedisPubSubChannelLayer",
        "CONFIG": {"hosts": [CONFIG.redis_url]},
    }
    if CONFIG.redis_url
    else {"BACKEND": "omsite.layer.LoopSafeInMemoryLayer"}
}

CELERY_BROKER_URL = CONFIG.redis_url or "memory://"
CELERY_BROKER_CONNECTION_RETRY_ON_STARTUP = True
CELERY_BROKER_CONNECTION_MAX_RETRIES = None
CELERY_BROKER_TRANSPORT_OPTIONS = (
    {"visibility_timeout": 3600} if CONFIG.redis_url else {"polling_interval": 0.02}
)
CELERY_BROKER_TRANSPORT_OPTIONS |= {"socket_connect_timeout": 2, "socket_timeout": 10}
# One that is deleted with its connection ends a worker whose broker went away.
CELERY_CONTROL_QUEUE_DURABLE, CELERY_CONTROL_QUEUE_EXCLUSIVE = True, False
CELERY_WORKER_PREFETCH_MULTIPLIER = 1
CELERY_TASK_DEFAULT_QUEUE = "observe"
CELERY_TASK_ROUTES = {"memory.tasks.run_reflectors": {"queue": "reflect"}}
# A wake-up is only news: a turn must not wait for a broker that is away.
CELERY_TASK_PUBLISH_RETRY_POLICY = {"max_retries": 1, "interval_start": 0.1}

MEMORY_OPTIONS_OF_AGENT = "agents.models.memory_options"
# The table whose rows, found by a thread's agent, hold memory options; empty for none.
MEMORY_AGENT_MODEL = "agents.AgentProfile"
MEMORY_MODELS = {
    "observer": CONFIG.om_observer_model or CONFIG.om_model,
    "reflector": CONFIG.om_reflector_model or CONFIG.om_model,
}
MEMORY_DEFAULTS = {"observer_prompt": CONFIG.om_observer_prompt}
MEMORY_EXTRACTORS = [path.strip() for path in CONFIG.om_extractors.split(",") if path.strip()]
MEMORY_HOOKS = [path.strip() for path in CONFIG.om_hooks.split(",") if path.strip()]
MEMORY_HOOK_EXECUTION = CONFIG.om_hook_execution
MODEL_BASE_URL = CONFIG.om_model_base_url
OFFLINE_DELAY = CONFIG.om_offline_delay
ACTOR_MODEL = CONFIG.om_model
LEASE = timedelta(seconds=CONFIG.om_lease_seconds)
CELERY_BEAT_SCHEDULE = {
    "sweep": {
        "task": "memory.tasks.sweep",
        "schedule": LEASE / 4,
        "options": {"expires": LEASE.total_seconds() / 4},
    },
    # By the clock and not by an interval: beat forgets when it last ran where its file is new.
    "expire": {"task": "agents.tasks.expire", "schedule": crontab(hour="3", minute="17")},
}

LOGIN_URL = "sign-in"
LOGIN_REDIRECT_URL = "home"
LOGOUT_REDIRECT_URL = "sign-in"
AUTH_PASSWORD_VALIDATORS = [
    {"NAME": "django.contrib.auth.password_validation.MinimumLengthValidator"},
    {"NAME": "django.contrib.auth.password_validation.CommonPasswordValidator"},
]
SESSION_COOKIE_SAMESITE = "Lax"
HTTPS = CONFIG.om_https and not EMBEDDED
SESSION_COOKIE_SECURE = CSRF_COOKIE_SECURE = SECURE_SSL_REDIRECT = HTTPS
SECURE_HSTS_SECONDS = 365 * 24 * 60 * 60 if HTTPS else 0
SECURE_REDIRECT_EXEMPT = ["^healthz$", "^readyz$", "^metrics$"]
SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https") if CONFIG.om_behind_proxy else None
# Whether other names of the domain speak HTTPS, and the preload list, are their owner's to say.
SILENCED_SYSTEM_CHECKS = ["security.W005", "security.W021"]
X_FRAME_OPTIONS = "DENY"

USE_TZ = True
TIME_ZONE = "UTC"
LANGUAGE_CODE = "en-us"

STATIC_URL = "/static/"
STATICFILES_DIRS = [BASE / "static"]
STATIC_ROOT = Path(CONFIG.static_root)
WHITENOISE_USE_FINDERS = EMBEDDED
# Once collected, files have hashed names and are kept by browsers for good.
if (STATIC_ROOT / "staticfiles.json").exists() and not EMBEDDED:
    STORAGES = {
        "default": {"BACKEND": "django.core.files.storage.FileSystemStorage"},
        "staticfiles": {"BACKEND": "whitenoise.storage.CompressedManifestStaticFilesStorage"},
    }
DATA_UPLOAD_MAX_MEMORY_SIZE = 4 * 1024 * 1024
# Without a MEDIA_URL: files are sent by a view that knows whose they are.
MEDIA_ROOT = CONFIG.media_root
ATTACHMENT_BYTES = int(CONFIG.om_attachment_megabytes * 1024 * 1024)
ATTACHMENTS_PER_MESSAGE = CONFIG.om_attachments_per_message

# What is too much: see docs/limits.md. 0 is no limit.
MESSAGE_CHARACTERS = CONFIG.om_message_characters
FRAME_BYTES = CONFIG.om_frame_kilobytes * 1024
SOCKETS_PER_USER = CONFIG.om_sockets_per_user
SENDS_PER_MINUTE = CONFIG.om_sends_per_minute
TURNS_AT_ONCE = CONFIG.om_turns_at_once
#: Who may use how many tokens and US dollars in a day.
PER_DAY = {
    "user": (CONFIG.om_tokens_per_user, CONFIG.om_dollars_per_user),
    "resource": (CONFIG.om_tokens_per_resource, CONFIG.om_dollars_per_resource),
    "server": (CONFIG.om_tokens_per_day, CONFIG.om_dollars_per_day),
}
SIGN_IN_TRIES = {
    "account": CONFIG.om_sign_in_tries_per_account,
    "address": CONFIG.om_sign_in_tries_per_address,
}
SIGN_IN_WINDOW = timedelta(minutes=CONFIG.om_sign_in_minutes)
#: For how many days what is kept: see docs/retention.md. 0 is for ever.
KEPT_DAYS = {
    "requests": CONFIG.om_keep_requests_days,
    "calls": CONFIG.om_keep_calls_days,
    "audit": CONFIG.om_keep_audit_days,
    "temporary": CONFIG.om_keep_temporary_days,
    "conversations": CONFIG.om_keep_conversations_days,
}
BEHIND_PROXY = CONFIG.om_behind_proxy
CALLS_PER_PROVIDER = CONFIG.om_calls_per_provider
MODEL_TRIES = CONFIG.om_model_tries
MODEL_SILENCE = CONFIG.om_model_silence

CONTENT_SECURITY_POLICY = {
    "DIRECTIVES": {
        "default-src": [NONE],
        "script-src": [SELF],
        "style-src": [SELF],
        "img-src": [SELF, "data:"],
        "font-src": [SELF],
        "connect-src": [SELF],
        "form-action": [SELF],
        "base-uri": [NONE],
        "frame-ancestors": [NONE],
    }
}

LOGGING = logging_config(CONFIG.om_log_format, secrets_in(os.environ, SECRET_KEY))
