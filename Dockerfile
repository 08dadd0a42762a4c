# Build: docker build -t aibox .
# Run:   docker run --rm --user "$(id -u):$(id -g)" -v "$PWD:/jobs" aibox train job.yaml
#        A mounted directory belongs to you, so the program must run as you to write
#        models there. In a named volume it writes without --user:
#        docker run --rm -v aibox-jobs:/jobs aibox train job.yaml
FROM golang:1.26-bookworm AS build
WORKDIR /src
COPY go.mod go.sum ./
RUN go mod download
COPY . .
ARG VERSION=container
RUN CGO_ENABLED=0 go build -trimpath -ldflags "-X main.version=${VERSION}" -o /out/aibox ./cmd/aibox

FROM debian:bookworm-slim
# A new named volume gets the owner of /jobs.
RUN apt-get update \
 && apt-get install -y --no-install-recommends ca-certificates tzdata \
 && rm -rf /var/lib/apt/lists/* \
 && useradd --system --uid 10001 --create-home aibox \
 && install -d -o aibox -g aibox /jobs
COPY --from=build /out/aibox /usr/local/bin/aibox
COPY configs/*.yaml /usr/share/aibox/configs/
USER aibox
# The user of --user may not exist in the container, and then has no name or home.
ENV USER=aibox HOME=/home/aibox
WORKDIR /jobs
ENTRYPOINT ["aibox"]
CMD ["--help"]
