# Sourced. install_packages FILE...: installs the Debian packages named in the files (one a line) that
# are missing; needs root or sudo only when something is missing.
install_packages() {
    local missing=() name sudo=
    for name in $(cat "$@" | sed 's/#.*//' | sort -u); do
        [ "$(dpkg-query -W -f '${db:Status-Status}' "$name" 2>/dev/null)" = installed ] || missing+=("$name")
    done
    [ ${#missing[@]} -eq 0 ] && return 0
    if [ "$(id -u)" -ne 0 ]; then
        command -v sudo >/dev/null || {
            echo "missing packages: ${missing[*]}" >&2
            echo "install them as root:  apt-get install ${missing[*]}" >&2
            return 1
        }
        sudo=sudo
    fi
    echo "installing ${#missing[@]} packages: ${missing[*]}"
    local log
    log=$(mktemp)
    if ! { $sudo env DEBIAN_FRONTEND=noninteractive apt-get update -q &&
           $sudo env DEBIAN_FRONTEND=noninteractive apt-get install -y -q --no-install-recommends "${missing[@]}"; } \
            >"$log" 2>&1; then
        tail -n 20 "$log" >&2
        rm -f "$log"
        echo "apt-get could not install: ${missing[*]}" >&2
        return 1
    fi
    rm -f "$log"
}
