# Shared by the scripts beside it: find Python, make the environment, install pinned requirements once.
# Sourced, never run; afterwards the working directory is the root of the tree.

cd "$(dirname "${BASH_SOURCE[0]}")/.."

say() { printf '==> %s\n' "$*" >&2; }

die() {
    printf 'error: %s\n' "$*" >&2
    exit 1
}

# Print a Python of at least 3.11: $PYTHON when it is set, else the first that fits on PATH.
find_python() {
    local candidate candidates=(python3 python3.14 python3.13 python3.12 python3.11)
    [ -z "${PYTHON:-}" ] || candidates=("$PYTHON")
    for candidate in "${candidates[@]}"; do
        if "$candidate" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then
            command -v "$candidate"
            return
        fi
    done
    die "no Python 3.11 or newer among: ${candidates[*]}. Install one, or name it: PYTHON=/path/to/python3.12 $0"
}

# Make the environment DIR unless it has a Python that runs and was made here: its commands name their folder.
make_venv() {
    local dir=$1 python version
    if "$dir/bin/python" -c '' 2>/dev/null && grep -qF "$(pwd -P)/$dir/" "$dir/bin/pip"; then
        return
    fi
    python=$(find_python)
    version=$("$python" -c 'import sys; print("%d.%d" % sys.version_info[:2])')
    "$python" -c 'import ensurepip, venv' 2>/dev/null ||
        die "Python $version lacks venv or ensurepip. On Debian and Ubuntu: apt install python$version-venv"
    say "making $dir with Python $version"
    "$python" -m venv --clear "$dir"
}

# Install requirements/NAME.txt into DIR, unless that was done since a requirements file or pyproject.toml last changed.
# Further arguments go to a second pip install. One installs at a time. The stamp is written last: an interrupted
# install is redone.
install_pinned() (
    dir=$1 name=$2 stamps=$1/.installed
    shift 2
    exec {lock}<requirements
    flock "$lock"
    make_venv "$dir"
    digest=$(cat requirements/*.txt pyproject.toml | sha256sum | cut -d' ' -f1)
    [ "$(cat "$stamps/$name" 2>/dev/null)" != "$digest" ] || exit 0
    # Sets installed under another digest share this environment and no longer hold.
    [ "$(cat "$stamps"/* 2>/dev/null | sort -u)" = "$digest" ] || rm -rf "$stamps"
    say "installing requirements/$name.txt into $dir"
    pip=("$dir/bin/python" -m pip install --quiet --disable-pip-version-check)
    "${pip[@]}" --only-binary :all: --require-hashes --requirement "requirements/$name.txt"
    [ $# -eq 0 ] || "${pip[@]}" --no-deps "$@"
    mkdir -p "$stamps"
    printf '%s\n' "$digest" >"$stamps/$name"
)

# The environment that everything runs in, with NAME's requirements and the project itself, editable.
setup() {
    install_pinned .venv "$1" --no-build-isolation --editable .
}
