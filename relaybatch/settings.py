"""Django settings. Everything that a deployment may change comes from the environment (see .env.example)."""

from __future__ import annotations

from pathlib import Path

from relaybatch.conf import env, url_settings
from relaybatch.conf.database_url import database_from_url
from relaybatch.http.body.body_limits import MAX_FORM_BYTES

BASE_DIR = Path(__file__).resolve().parent.parent

SECRET_KEY = env.required(
    "SECRET_KEY", env.secret("SECRET_KEY"), expected="a long random text, or SECRET_KEY_FILE"
)
DEBUG = False
ALLOWED_HOSTS = url_settings.host_names("ALLOWED_HOSTS")
CSRF_TRUSTED_ORIGINS = url_settings.origins("CSRF_TRUSTED_ORIGINS")

INSTALLED_APPS = [
    "relaybatch.apps.SiteConfig",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "django.contrib.staticfiles",
    "django.contrib.postgres",
    "rest_framework",
    "drf_spectacular_sidecar",  # the files of /docs
    "routing",
    "usage",
    "batches",
    "relaybatch.apps.WiringConfig",
]
MIDDLEWARE = [
    "relaybatch.http.middleware.request_id",
    "relaybatch.http.middleware.headers_only",
    "relaybatch.http.middleware.drain_unread_body",
    "relaybatch.http.middleware.optional_slash",
    "django.middleware.security.SecurityMiddleware",
    "whitenoise.middleware.WhiteNoiseMiddleware",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
]
ROOT_URLCONF = "relaybatch.urls"
WSGI_APPLICATION = "relaybatch.wsgi.application"
APPEND_SLASH = False
LOGIN_REDIRECT_URL = "/admin/"
TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "DIRS": [BASE_DIR / "relaybatch" / "templates"],  # before the admin's own templates
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
            ]
        },
    }
]

DATABASE_URL = env.required(
    "DATABASE_URL", env.secret("DATABASE_URL"), expected="postgresql://user:password@host:port/name"
)
DATABASES = {"default": database_from_url(DATABASE_URL)}
REDIS_URL = url_settings.redis_url("REDIS_URL")
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"

AUTH_USER_MODEL = "routing.User"
AUTH_PASSWORD_VALIDATORS = [
    {"NAME": f"django.contrib.auth.password_validation.{name}"}
    for name in ("UserAttributeSimilarityValidator", "MinimumLengthValidator", "CommonPasswordValidator")
]

LANGUAGE_CODE = "en-us"
USE_I18N = False
FORMAT_MODULE_PATH = "relaybatch.formats"
USE_TZ = True
TIME_ZONE = "UTC"
STATIC_URL = "/static/"
# Static files are served from the packages, so a deployment needs no collectstatic step.
WHITENOISE_USE_FINDERS = True
WHITENOISE_AUTOREFRESH = False

# TLS is terminated in front of the deployment (HTTPS_ONLY) or not used at all.
HTTPS_ONLY = env.flag("HTTPS_ONLY")
SECURE_SSL_REDIRECT = HTTPS_ONLY
SECURE_REDIRECT_EXEMPT = [r"^(healthz|readyz|metrics)/?$"]  # probes come from inside the network, without TLS
SECURE_HSTS_SECONDS = 31_536_000 if HTTPS_ONLY else 0
SECURE_HSTS_INCLUDE_SUBDOMAINS = HTTPS_ONLY
SECURE_HSTS_PRELOAD = HTTPS_ONLY
SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https") if HTTPS_ONLY else None
SESSION_COOKIE_SECURE = HTTPS_ONLY
CSRF_COOKIE_SECURE = HTTPS_ONLY
X_FRAME_OPTIONS = "DENY"
# Without HTTPS_ONLY there is no TLS, which these four checks ask for.
SILENCED_SYSTEM_CHECKS = (
    [] if HTTPS_ONLY else ["security.W004", "security.W008", "security.W012", "security.W016"]
)

# For the admin's forms only, which anybody may send to its login; for other bodies: relaybatch.http.body.body_limits.
# No form takes a file: large ones are discarded, not written to disk.
DATA_UPLOAD_MAX_MEMORY_SIZE = MAX_FORM_BYTES
FILE_UPLOAD_HANDLERS = ["django.core.files.uploadhandler.MemoryFileUploadHandler"]

REST_FRAMEWORK = {
    "DEFAULT_AUTHENTICATION_CLASSES": ["routing.credentials.authentication.CredentialAuthentication"],
    "DEFAULT_PERMISSION_CLASSES": ["rest_framework.permissions.IsAuthenticated"],
    "DEFAULT_CONTENT_NEGOTIATION_CLASS": "relaybatch.http.error_responses.IgnoreAccept",
    "DEFAULT_RENDERER_CLASSES": ["relaybatch.http.error_responses.JsonRenderer"],
    "DEFAULT_PARSER_CLASSES": ["relaybatch.http.error_responses.UnparsedJson"],
    "EXCEPTION_HANDLER": "relaybatch.http.error_responses.exception_handler",
    "UNAUTHENTICATED_USER": None,
    # OPTIONS is not served, as any other method that a route does not have.
    "DEFAULT_METADATA_CLASS": None,
}

RELAY_MASTER_KEY = env.master_keys("RELAY_MASTER_KEY", env.secret("RELAY_MASTER_KEY"))
RELAY_ADMIN_TOKEN = env.secret("RELAY_ADMIN_TOKEN")
RELAY_CURRENCY = env.currency("RELAY_CURRENCY", "USD")
PUBLIC_URL = url_settings.origin("PUBLIC_URL")

RELAY_BATCH_MAX_ITEMS = env.integer("RELAY_BATCH_MAX_ITEMS", 50_000, minimum=1, maximum=1_000_000)
RELAY_MAX_REQUEST_BYTES = env.integer("RELAY_MAX_REQUEST_BYTES", 33_554_432, minimum=1024, maximum=67_108_864)
RELAY_CUSTOM_ID_MAX_ITEMS = env.integer("RELAY_CUSTOM_ID_MAX_ITEMS", 1000, minimum=1, maximum=1_000_000)
RELAY_CUSTOM_ID_MAX_ITEM_BYTES = env.integer(
    "RELAY_CUSTOM_ID_MAX_ITEM_BYTES", 102_400, minimum=1024, maximum=536_870_912
)
RELAY_CUSTOM_ID_MAX_REQUEST_BYTES = env.integer(
    "RELAY_CUSTOM_ID_MAX_REQUEST_BYTES", 115_343_360, minimum=1024, maximum=536_870_912
)
RELAY_MAX_FILE_BYTES = env.integer("RELAY_MAX_FILE_BYTES", 209_715_200, minimum=1024, maximum=536_870_912)
BODY_LIMIT_SETTINGS = ("RELAY_MAX_REQUEST_BYTES", "RELAY_CUSTOM_ID_MAX_REQUEST_BYTES")
FILE_LIMIT_SETTINGS = ("RELAY_MAX_FILE_BYTES",)
RELAY_MAX_RESPONSE_BYTES = env.integer("RELAY_MAX_RESPONSE_BYTES", 67_108_864, minimum=1024)
RELAY_MAX_OPEN_ITEMS = env.integer("RELAY_MAX_OPEN_ITEMS", 500_000, minimum=1)
RELAY_BATCH_CONCURRENCY = env.integer("RELAY_BATCH_CONCURRENCY", 8, minimum=1, maximum=512)
RELAY_BATCH_ITEM_TIMEOUT_S = env.integer("RELAY_BATCH_ITEM_TIMEOUT_S", 300, minimum=1, maximum=86_400)
RELAY_BATCH_MAX_ATTEMPTS = env.integer("RELAY_BATCH_MAX_ATTEMPTS", 3, minimum=1, maximum=10)
RELAY_BATCH_WINDOW = env.optional_integer("RELAY_BATCH_WINDOW", minimum=1, maximum=100_000, unset_word="auto")
RELAY_WORKER_LOST_S = env.integer("RELAY_WORKER_LOST_S", 30, minimum=1, maximum=86_400)
RELAY_SHUTDOWN_GRACE_S = env.integer("RELAY_SHUTDOWN_GRACE_S", 30, minimum=0, maximum=86_400)
RELAY_TRUST_ENV_PROXIES = env.flag("RELAY_TRUST_ENV_PROXIES")
UPSTREAM_CERTIFICATES = (
    env.certificate_files("REQUESTS_CA_BUNDLE")
    + env.certificate_files("CURL_CA_BUNDLE")
    + env.certificate_files("SSL_CERT_FILE")
)
env.folders("SSL_CERT_DIR")  # checked only: OpenSSL reads it itself, and would ignore an error
RELAY_BATCH_PAYLOAD_DIR = env.text("RELAY_BATCH_PAYLOAD_DIR", "relay-batch-payloads")
RELAY_BATCH_PAYLOAD_URL = url_settings.payload_url("RELAY_BATCH_PAYLOAD_URL")
RELAY_BATCH_PAYLOAD_FALLBACK_URL = url_settings.payload_url("RELAY_BATCH_PAYLOAD_FALLBACK_URL")
RELAY_BATCH_INLINE_RESPONSE_BYTES = env.integer(
    "RELAY_BATCH_INLINE_RESPONSE_BYTES", 16_384, minimum=0, maximum=1_048_576
)
RELAY_BATCH_RETENTION_DAYS = env.optional_integer("RELAY_BATCH_RETENTION_DAYS", minimum=1, maximum=36_500)

LOG_LEVEL = env.choice("LOG_LEVEL", "INFO", ("DEBUG", "INFO", "WARNING", "ERROR"))
LOG_FORMAT = env.choice("LOG_FORMAT", "json", ("json", "text"))
LOGGING_CONFIG = "relaybatch.log_format.configure"
LOGGING = {
    "version": 1,
    "disable_existing_loggers": False,
    "formatters": {
        "json": {"()": "relaybatch.log_format.JsonFormatter"},
        "text": {
            "()": "relaybatch.log_format.TextFormatter",
            "format": "%(asctime)s %(levelname)s %(name)s %(message)s",
        },
    },
    "handlers": {"stderr": {"class": "logging.StreamHandler", "formatter": LOG_FORMAT}},
    "root": {"handlers": ["stderr"], "level": LOG_LEVEL},
    "loggers": {
        "django.request": {"level": "ERROR"},
        "django.security": {"level": "ERROR"},
        "celery": {"level": "WARNING"},
        # Its lines quote invalid headers of an upstream.
        "urllib3": {"level": "CRITICAL"},
        # Its lines quote an exception's message. batches.tasks logs a task that fails.
        "celery.app.trace": {"level": "CRITICAL"},
    },
}
