#!/bin/bash
# Installs CUDA's compiler and headers on Debian if they are missing: the package nvidia-cuda-toolkit (2 GB to download)
# of the component non-free, from this machine's usual package source. Run it as root; it is idempotent. It gives up if
# the download takes longer than NVCC_SECONDS (600).
set -euo pipefail

if command -v nvcc >/dev/null && { [ -e /usr/include/cuda.h ] || [ -e /usr/local/cuda/include/cuda.h ]; }; then
	exit 0
fi
export DEBIAN_FRONTEND=noninteractive
apt="apt-get -o Acquire::Retries=3 -q"
$apt update
has_candidate() { [[ $(apt-cache policy nvidia-cuda-toolkit) == *"Candidate: "[0-9]* ]]; }
if ! has_candidate; then
	# The same entries as those of Debian's main component, with other components.
	apt-get indextargets --format '$(LABEL)|$(COMPONENT)|$(SITE)|$(SOURCESENTRY)' 'Created-By: Packages' | sort -u |
		while IFS='|' read -r label component site entry; do
			file=${entry%:*} more=/etc/apt/sources.list.d/aibox-nonfree
			if [ "$label" != Debian ] || [ "$component" != main ]; then continue; fi
			case $file in
			*.sources) awk -v RS= -v ORS='\n\n' -v site="$site" 'index($0, site)' "$file" | sed -E 's/^Components:.*/Components: contrib non-free/' >$more.sources ;;
			*) awk -v site="$site" '/^deb / && index($0, site)' "$file" | sed -E 's/ main( .*)?$/ contrib non-free/' >$more.list ;;
			esac
		done
	$apt update
	if ! has_candidate; then
		echo "gpu/install.sh: no source of packages here has nvidia-cuda-toolkit" >&2
		exit 1
	fi
fi
# Only the download may be stopped: dpkg does not like that.
timeout "${NVCC_SECONDS:-600}" $apt install -y --no-install-recommends --download-only nvidia-cuda-toolkit
$apt install -y --no-install-recommends nvidia-cuda-toolkit
