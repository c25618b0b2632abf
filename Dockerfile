# The page, the package, and an image that has nothing but these. `docker build -t headwater .`

FROM node:24-slim AS page
WORKDIR /build/web
COPY web/package.json web/.npmrc ./
RUN npm install --no-progress --no-audit --no-fund
COPY web/ ./
RUN npm run build -- --logLevel warn

FROM python:3.13-slim AS package
WORKDIR /build
COPY pyproject.toml constraints.txt README.md LICENSE ./
COPY src/ src/
COPY --from=page /build/src/headwater/server/page/ src/headwater/server/page/
RUN pip install --no-cache-dir --disable-pip-version-check --prefix=/installed -c constraints.txt '.[postgres,otel]'

FROM python:3.13-slim
RUN useradd --system --uid 10001 --home-dir /data headwater && install --directory --owner=headwater --mode=700 /data
COPY --from=package /installed/ /usr/local/
USER headwater
WORKDIR /data
# Others can reach a container, so that it starts only with a key: see compose.yaml.
ENV HEADWATER_SERVER__HOST=0.0.0.0 HEADWATER_STORE__URL=sqlite:/data/headwater.db PYTHONUNBUFFERED=1
VOLUME /data
EXPOSE 8790
HEALTHCHECK --interval=10s --timeout=3s --start-period=10s \
  CMD ["python", "-c", "import urllib.request as u; u.urlopen('http://127.0.0.1:8790/readyz', timeout=2)"]
STOPSIGNAL SIGTERM
ENTRYPOINT ["headwater"]
CMD ["serve"]
