#!/usr/bin/env bash
# The kit on a bare Debian 12: the missing venv package is named in one line; then set-up, second start, JupyterLab,
# grader; with GATES=1 also `.ci/run`. Nothing of this machine is in there but its network and pip's settings.
#
#   tests/bare_root.sh [FOLDER]      a FOLDER is kept, and used again by the next run
#
# Needs root, a Debian mirror, and the packages mmdebstrap and bubblewrap.
set -euo pipefail

kit=$(git -C "$(dirname "$0")" rev-parse --show-toplevel)
if (($#)); then
    root=$(realpath -m "$1")
else
    root=$(mktemp -d)
    trap 'rm -rf "$root"' EXIT
fi

# Run a command in the root, in its copy of the kit; words before `--` go to bubblewrap.
inside() {
    local options=()
    while [[ $1 != -- ]]; do options+=("$1"); shift; done
    shift
    bwrap --bind "$root" / --dev /dev --proc /proc --perms 1777 --tmpfs /tmp --cap-add ALL --die-with-parent \
        --clearenv --setenv PATH /usr/sbin:/usr/bin:/sbin:/bin --setenv HOME /root --setenv LANG C.UTF-8 \
        "${settings[@]}" "${options[@]}" --chdir /kit "$@"
}

# What pip needs here to reach its index: name service, certificates, its own settings and variables.
settings=()
for file in /etc/resolv.conf /etc/hosts /etc/ssl/certs /etc/pip.conf /etc/xdg/pip; do
    settings+=(--ro-bind-try "$(realpath -m "$file")" "$file")
done
while IFS='=' read -r name value; do
    [[ $name =~ ^(PIP_.*|SSL_CERT_.*|https?_proxy|HTTPS?_PROXY|no_proxy|NO_PROXY)$ ]] && settings+=(--setenv "$name" "$value")
done < <(env)

step() { printf '\n== %s\n' "$*"; }

if [[ ! -x $root/usr/bin/python3 ]]; then
    step "a bare Debian root with Python, make and git"
    mmdebstrap --quiet --variant=minbase --include=ca-certificates,python3,make,git bookworm "$root"
fi
rm -rf "$root/kit"
git clone --quiet "$kit" "$root/kit"

if inside -- python3 -c 'import ensurepip' 2>/dev/null; then
    step "python3-venv is there from an earlier run: its absence is not shown"
else
    step "make setup, without the venv package"
    said=$(inside -- make setup 2>&1) && { echo "it should have failed: $said"; exit 1; }
    echo "$said"
    [[ $(grep -c '^setup:' <<<"$said") == 1 && $said == *"apt-get install python3.11-venv"* ]]
    step "apt-get install python3.11-venv"
    inside -- sh -c 'apt-get update -qq && apt-get install -qq --no-install-recommends python3.11-venv >/dev/null'
fi

step "make setup"
inside -- make setup
step "make setup again, without network"
inside --unshare-net -- make setup
step "what JupyterLab needs, and the grader on the solution"
inside -- .venv/bin/statelab lab --check
inside -- make verify LESSON=22 TARGET=solution
if [[ ${GATES:-} == 1 ]]; then
    step ".ci/run"
    inside --setenv CI true -- bash .ci/run
fi
