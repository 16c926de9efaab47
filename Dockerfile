# Trimtab in a container: the gateway, or any verb that needs no engine. vLLM runs in an image of its own.
FROM python:3.12-slim AS build
WORKDIR /src
COPY pyproject.toml README.md LICENSE ./
COPY src ./src
RUN pip wheel --no-cache-dir --no-deps --wheel-dir /wheels .

FROM python:3.12-slim
RUN --mount=type=bind,from=build,source=/wheels,target=/wheels \
    pip install --no-cache-dir "$(find /wheels -name 'trimtab-*.whl')[gateway]" \
 && useradd --create-home --uid 10001 trimtab
ENV XDG_STATE_HOME=/data XDG_DATA_HOME=/data XDG_CACHE_HOME=/data PYTHONUNBUFFERED=1
RUN install -d -o 10001 -g 10001 /data
VOLUME /data
USER 10001
EXPOSE 8080
ENTRYPOINT ["trimtab"]
CMD ["gateway", "--config", "/etc/trimtab/gateway.yaml"]
