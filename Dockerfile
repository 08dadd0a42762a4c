# Build: docker build -t aibox .
# Run:   docker run --rm -v "$PWD:/jobs" -w /jobs aibox train job.yaml
FROM golang:1.26-bookworm AS build
WORKDIR /src
COPY go.mod go.sum ./
RUN go mod download
COPY . .
ARG VERSION=container
RUN CGO_ENABLED=0 go build -trimpath -ldflags "-X main.version=${VERSION}" -o /out/aibox ./cmd/aibox

FROM debian:bookworm-slim
RUN apt-get update \
 && apt-get install -y --no-install-recommends ca-certificates tzdata \
 && rm -rf /var/lib/apt/lists/* \
 && useradd --system --uid 10001 --create-home aibox
COPY --from=build /out/aibox /usr/local/bin/aibox
COPY configs/*.yaml /usr/share/aibox/configs/
USER aibox
WORKDIR /home/aibox
ENTRYPOINT ["aibox"]
CMD ["--help"]
