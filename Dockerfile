# One image for all processes: `pumice serve scheduler|controllers|webhooks`, and the command line.
# The base is named by digest: a tag can be moved. `docker buildx imagetools inspect TAG` prints it.
ARG PYTHON=python:3.11-slim-bookworm@sha256:a36c24f9cbdf4fd0f52d67f0823eeac19c2028c637cecc392d97f980d4fec56b

FROM ${PYTHON} AS build
ENV PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_NO_CACHE_DIR=1 PYTHONDONTWRITEBYTECODE=1
WORKDIR /src
COPY requirements/runtime.txt requirements/build.txt requirements/
# Two environments: what builds the package does not end up in the image.
RUN python -m venv /opt/build \
 && /opt/build/bin/pip install --require-hashes --no-deps -r requirements/build.txt \
 && python -m venv /opt/pumice \
 && /opt/pumice/bin/pip install --require-hashes --no-deps -r requirements/runtime.txt
COPY pyproject.toml README.md LICENSE ./
COPY src/ src/
COPY deploy/certificates.py deploy/certificates.py
# A compiler for the kernel of placing, which stays in this stage.
RUN apt-get update && apt-get install -y --no-install-recommends gcc libc6-dev
RUN /opt/build/bin/pip wheel --no-deps --no-build-isolation --wheel-dir /tmp/wheel . \
 && /opt/pumice/bin/pip install --no-deps --no-index /tmp/wheel/*.whl \
 && { echo '#!/opt/pumice/bin/python'; cat deploy/certificates.py; } > /opt/pumice/bin/pumice-certificates \
 && chmod 0755 /opt/pumice/bin/pumice-certificates \
 && /opt/pumice/bin/python -m pumice.kernel.library \
 && /opt/pumice/bin/python -m compileall -q /opt/pumice/lib \
 && /opt/pumice/bin/pip uninstall --yes pip setuptools \
 && /opt/pumice/bin/pumice --version

FROM ${PYTHON}
RUN pip uninstall --yes --root-user-action=ignore pip setuptools wheel \
 && groupadd --system --gid 1000 pumice \
 && useradd --system --uid 1000 --gid 1000 --no-create-home --home-dir /tmp --shell /usr/sbin/nologin pumice
COPY --from=build /opt/pumice /opt/pumice
ENV PATH=/opt/pumice/bin:$PATH \
    PYTHONDONTWRITEBYTECODE=1 \
    PYTHONUNBUFFERED=1
USER 1000:1000
WORKDIR /tmp
EXPOSE 8080 8081 8443 11251
ENTRYPOINT ["pumice"]
