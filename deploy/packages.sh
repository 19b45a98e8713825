# Sourced. install_packages FILE...: installs the Debian packages named in the files (one a line, or "a | b" where
# releases of Debian call it otherwise) that are missing; needs root or sudo only when something is missing.
package_there() {
    local names name
    IFS='| ' read -ra names <<<"$1"
    for name in "${names[@]}"; do
        [ "$(dpkg-query -W -f '${db:Status-Status}' "$name" 2>/dev/null)" = installed ] && return 0
    done
    return 1
}

install_packages() {
    local missing=() line sudo=
    while read -r line; do
        package_there "$line" || missing+=("$line")
    done < <(cat "$@" | sed 's/#.*//' | grep . | sort -u)
    [ ${#missing[@]} -eq 0 ] && return 0
    if [ "$(id -u)" -ne 0 ]; then
        command -v sudo >/dev/null || {
            echo "missing packages; install them as root:  apt-get satisfy$(printf ' "%s"' "${missing[@]}")" >&2
            return 1
        }
        sudo=sudo
    fi
    echo "installing ${#missing[@]} packages:$(printf ' %s;' "${missing[@]}")"
    local log
    log=$(mktemp)
    if ! { $sudo env DEBIAN_FRONTEND=noninteractive apt-get update -q &&
           $sudo env DEBIAN_FRONTEND=noninteractive apt-get satisfy -y -q --no-install-recommends "${missing[@]}"; } \
            >"$log" 2>&1; then
        tail -n 20 "$log" >&2
        rm -f "$log"
        echo "apt-get could not install:$(printf ' %s;' "${missing[@]}")" >&2
        return 1
    fi
    rm -f "$log"
}
