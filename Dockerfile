# Two steps: the packages are built where a compiler may be, and copied to where none is.
FROM python:3.11-slim AS packages
ENV PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_NO_CACHE_DIR=1
RUN python -m venv /venv
COPY requirements.lock /
RUN /venv/bin/pip install --require-hashes -r /requirements.lock

FROM python:3.11-slim
ENV PATH=/venv/bin:$PATH PYTHONUNBUFFERED=1 PYTHONDONTWRITEBYTECODE=1 MEDIA_ROOT=/media
RUN useradd --system --uid 10001 --no-create-home omsite \
 && install -d -o omsite /media /run/omsite
COPY --from=packages /venv /venv
WORKDIR /app
COPY manage.py ./
COPY omsite omsite
COPY memory memory
COPY agents agents
COPY templates templates
COPY static static
# Names get a hash of their content, so that browsers keep them for good.
RUN SECRET_KEY=only-while-building REDIS_URL=redis://nowhere DATABASE_URL=postgresql://nobody@nowhere/none \
    python manage.py collectstatic --no-input --verbosity 0
USER omsite
VOLUME /media
EXPOSE 8000
HEALTHCHECK --interval=10s --timeout=5s --start-period=30s \
  CMD ["python", "-c", "import urllib.request as u; u.urlopen('http://127.0.0.1:8000/healthz', timeout=4)"]
CMD ["python", "manage.py", "serve", "--host", "0.0.0.0", "--port", "8000"]
