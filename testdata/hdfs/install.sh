#!/bin/sh
# Installs what the HDFS integration tests need on Debian: Java and Maven for
# Hadoop's mini cluster, a Kerberos KDC and its tools. Run as root; running it
# again does no harm. The KDC is used as an ordinary program by the tests: the
# system's own service is neither needed nor started.
set -eu

packages="openjdk-17-jdk-headless maven krb5-kdc krb5-admin-server krb5-user"

missing=""
for p in $packages; do
	if ! dpkg-query -W -f '${Status}' "$p" 2>/dev/null | grep -q 'ok installed'; then
		missing="$missing $p"
	fi
done
if [ -z "$missing" ]; then
	exit 0
fi
export DEBIAN_FRONTEND=noninteractive
apt-get -o Acquire::Retries=3 update -q
# shellcheck disable=SC2086
apt-get -o Acquire::Retries=3 install -y -q --no-install-recommends $missing
