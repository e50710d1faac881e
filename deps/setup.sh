#!/usr/bin/env bash
# Bring this checkout to where a Makefile target can run. Every step is skipped when it is done already.
#   setup.sh demo | dev     system packages, .venv with the group's Python packages, dependencies, native module
#   setup.sh asan           dev, and a sanitized native module in build/asan
#   setup.sh run-asan CMD.. run CMD with the sanitized module
#   setup.sh tsan, run-tsan the same with ThreadSanitizer, in build/tsan
#   setup.sh swiftshader    print the manifest of SwiftShader, a Vulkan driver that has less; fetched if need be
#   setup.sh say TEXT       one line of progress
set -euo pipefail
cd "$(dirname "$0")/.."
export BUILD_CLOCK=${BUILD_CLOCK:-$(date +%s)}
PYTHON=${PYTHON:-python3}
BIN=.venv/bin

say() { printf '[%4d s] %s\n' $(($(date +%s) - BUILD_CLOCK)) "$*" >&2; }
fail() { printf 'error: %s\n' "$*" >&2; exit 1; }

# Run a command quietly; show what it said only when it fails.
quietly() {
    local log=".make/$1.log" && shift
    "$@" >"$log" 2>&1 || { cat "$log" >&2; fail "this failed: $*"; }
}

# A stamp holds the hash of what its step depends on: editing a file and editing it back costs nothing.
fresh() { [ -f ".make/$1" ] && [ "$(cat ".make/$1")" = "$2" ]; }
stamp() { printf '%s' "$2" >".make/$1"; }
hash_of() { sha256sum "$@" | sha256sum | cut -d' ' -f1; }

have_library() { ldconfig -p 2>/dev/null | grep -q "$1" || /sbin/ldconfig -p 2>/dev/null | grep -q "$1"; }
have_manifest() {
    local share
    for share in /etc /usr/local/share /usr/share ${VULKAN_SDK:+"$VULKAN_SDK/share"}; do
        compgen -G "$share/vulkan/$1" >/dev/null && return 0
    done
    return 1
}
have_python_header() { "$PYTHON" -c 'import sysconfig, pathlib, sys; sys.exit(not pathlib.Path(sysconfig.get_path("include"), "Python.h").exists())'; }
python_package() { "$PYTHON" -c 'import sys; print("python%d.%d" % sys.version_info[:2])'; }

# Print the Debian packages that give what this machine lacks. Asks for the thing, not for the package: a compiler or
# a driver may have come another way.
missing_packages() {
    local validation=$1
    local cxx=${CXX:-g++}
    command -v "${cxx%% *}" >/dev/null || echo g++
    "$PYTHON" -c 'import venv, ensurepip' 2>/dev/null || echo "$(python_package)-venv"
    have_python_header || echo "$(python_package)-dev"
    have_library libvulkan.so.1 || echo libvulkan1
    [ -n "${VK_DRIVER_FILES:-${VK_ICD_FILENAMES:-}}" ] || have_manifest 'icd.d/*.json' || echo mesa-vulkan-drivers
    # orders in Fortran are tested with it
    if [ "$validation" = yes ]; then command -v gfortran >/dev/null || echo gfortran; fi
    if [ "$validation" = yes ] && [ -z "${VK_LAYER_PATH:-}" ]; then
        have_manifest 'explicit_layer.d/VkLayer_khronos_validation.json' || echo vulkan-validationlayers
    fi
}

system_packages() {
    command -v "$PYTHON" >/dev/null || fail "no $PYTHON on PATH. Install Python 3.11 or newer, or set PYTHON."
    "$PYTHON" -c 'import sys; sys.exit(sys.version_info < (3, 11))' ||
        fail "$PYTHON is $("$PYTHON" -V 2>&1); Python 3.11 or newer is needed. Set PYTHON=python3.x."
    local missing root=()
    missing=$(missing_packages "$1" | xargs)
    [ -n "$missing" ] || return 0
    command -v apt-get >/dev/null || fail "missing here, by their Debian names: $missing. Install them and run make again."
    if [ "$(id -u)" != 0 ]; then
        sudo -n true 2>/dev/null || [ -t 0 ] && command -v sudo >/dev/null ||
            fail "missing packages, and no right to install them. As root: apt-get install $missing"
        root=(sudo)
    fi
    say "installing system packages: $missing"
    export DEBIAN_FRONTEND=noninteractive
    quietly apt-update "${root[@]}" apt-get -q update
    # shellcheck disable=SC2086  # one word for each package
    quietly apt-install "${root[@]}" apt-get -q install -y --no-install-recommends $missing
}

# Print the third-party requirements of the project and of the named groups, one a line.
requirements() {
    "$PYTHON" - "$@" <<'PY'
import sys, tomllib
data = tomllib.load(open("pyproject.toml", "rb"))
lines = data["build-system"]["requires"] + data["project"]["dependencies"]
for group in sys.argv[1:]:
    lines += data["project"]["optional-dependencies"][group]
print("\n".join(sorted(set(lines))))
PY
}

python_packages() {
    local name=$1 wanted state
    shift
    wanted=$(requirements "$@")
    state=$(printf '%s' "$wanted" | sha256sum | cut -d' ' -f1)
    if [ ! -x $BIN/python ]; then
        say "making .venv"
        rm -f .make/packages-*
        quietly venv "$PYTHON" -m venv .venv
    fi
    fresh "packages-$name" "$state" && return 0
    say "installing Python packages"
    printf '%s\n' "$wanted" >".make/requirements-$name.txt"
    quietly pip $BIN/python -m pip install --disable-pip-version-check -r ".make/requirements-$name.txt"
    stamp "packages-$name" "$state"
}

native_state() {
    { find vkdispatch_native deps -type f -not -name '*.pyi' -not -path '*/__pycache__/*' -print0 | sort -z | xargs -0 cat
      cat setup.py pyproject.toml; printf '%s' "${CXX:-}${CXXFLAGS:-}${LDFLAGS:-}"; } | sha256sum | cut -d' ' -f1
}

# The build says its own lines of progress, and the compiler's warnings.
build_module() {
    say "building the native module"
    $BIN/python setup.py -q build_ext --inplace >&2
}

native_module() {
    local state installed
    state=$(native_state) installed=$(hash_of pyproject.toml setup.py)
    if ! fresh native "$state" || [ ! -f vkdispatch_native.abi3.so ]; then
        build_module
        stamp native "$state"
    fi
    if ! fresh installed "$installed" || [ ! -x $BIN/vdlist ]; then
        say "installing the project into .venv"
        # the distribution had another name before 1.0.0, and both would be found
        if [ -d vkdispatch.egg-info ]; then
            quietly uninstall $BIN/python -m pip uninstall -y vkdispatch
            rm -rf vkdispatch.egg-info
        fi
        quietly install $BIN/python -m pip install --disable-pip-version-check --no-build-isolation --no-deps -e .
        stamp installed "$installed"
    fi
}

everything() {
    local name=$1 validation=$2 fetch=""
    shift 2
    mkdir -p .make
    system_packages "$validation"
    if ! fresh native "$(native_state)"; then
        # glslang compiles while pip downloads: the two hardly compete.
        "$PYTHON" deps/fetch_deps.py >.make/prefix &
        fetch=$!
        # shellcheck disable=SC2064  # the id of now
        trap "kill $fetch 2>/dev/null || true" EXIT
    fi
    python_packages "$name" "$@"
    [ -z "$fetch" ] || wait "$fetch" || exit 1
    native_module
}

asan() {
    everything dev yes test docs dev
    say "building the sanitized native module"
    VKDISPATCH_SANITIZE=1 $BIN/python setup.py -q build_ext --build-lib build/asan --build-temp build/asan-temp >&2
}

tsan() {
    everything dev yes test docs dev
    say "building the module for ThreadSanitizer"
    VKDISPATCH_SANITIZE=thread $BIN/python setup.py -q build_ext --build-lib build/tsan --build-temp build/tsan-temp >&2
}

# Only our module is instrumented: what the drivers and Python do among themselves is not its business.
run_tsan() {
    local cxx=${CXX:-g++}
    export PYTHONPATH=$PWD/build/tsan PYTHONSAFEPATH=1
    export TSAN_OPTIONS=suppressions=$PWD/deps/tsan.supp:ignore_noninstrumented_modules=1:report_thread_leaks=0:exitcode=66:${TSAN_OPTIONS:-}
    local preload
    preload="$($cxx -print-file-name=libtsan.so) $($cxx -print-file-name=libstdc++.so.6)"
    # ThreadSanitizer's memory map knows nothing of high address randomization.
    LD_PRELOAD=$preload exec setarch "$(uname -m)" --addr-no-randomize "$@"
}

# Python itself is not sanitized, so the runtimes are preloaded; libstdc++ too, for ASan must find __cxa_throw at start.
run_asan() {
    local cxx=${CXX:-g++} preload="" name
    for name in libasan.so libubsan.so libstdc++.so.6; do preload+="$($cxx -print-file-name=$name) "; done
    export PYTHONPATH=$PWD/build/asan PYTHONSAFEPATH=1 PYTHONMALLOC=malloc
    export ASAN_OPTIONS=detect_leaks=0:abort_on_error=1:${ASAN_OPTIONS:-}
    export UBSAN_OPTIONS=print_stacktrace=1:${UBSAN_OPTIONS:-}
    local loaded
    loaded=$(LD_PRELOAD=$preload $BIN/python -c 'import vkdispatch_native; print(vkdispatch_native.__file__)')
    case $loaded in "$PWD"/build/asan/*) ;; *) fail "the sanitized module is not the one that is loaded, but $loaded" ;; esac
    LD_PRELOAD=$preload exec "$@"
}

# The machine's SwiftShader, or the two files of it that Debian's chromium-common has (31 MB to download). They are
# kept beside the cached dependencies; apt checks what it downloads, and nothing is installed.
swiftshader() {
    local cache=${XDG_CACHE_HOME:-$HOME/.cache}/vkdispatch-build found
    for found in /usr/lib/chromium "$cache/swiftshader"; do
        if [ -e "$found/vk_swiftshader_icd.json" ]; then
            echo "$found/vk_swiftshader_icd.json"
            return
        fi
    done
    command -v apt-get >/dev/null && command -v dpkg-deb >/dev/null ||
        fail "no SwiftShader: only from Debian's package chromium-common can it be had here"
    mkdir -p .make "$cache"
    UNPACKED=$(mktemp -d "$cache/swiftshader-XXXXXX")
    trap 'rm -rf "$UNPACKED"' EXIT
    say "fetching SwiftShader"
    unpack_swiftshader "$UNPACKED" >.make/swiftshader.log 2>&1 ||
        fail "no SwiftShader: $(tail -n 1 .make/swiftshader.log)"
    # another make may have been faster
    mv -T "$UNPACKED/usr/lib/chromium" "$cache/swiftshader" || [ -e "$cache/swiftshader/vk_swiftshader_icd.json" ]
    echo "$cache/swiftshader/vk_swiftshader_icd.json"
}

# Where the machine's lists of packages are missing or old, fetch some of our own: that needs no rights.
unpack_swiftshader() {
    local folder=$1 options=(-o Acquire::Retries=1 -o Acquire::http::Timeout=20)
    [ "$(id -u)" != 0 ] || options+=(-o APT::Sandbox::User=root)
    mkdir -p "$folder/lists/partial"
    (
        cd "$folder"
        timeout 300 apt-get -q "${options[@]}" download chromium-common && exit
        options+=(-o "Dir::State::Lists=$folder/lists" -o "Dir::Cache=$folder" -o Acquire::Languages=none)
        timeout 120 apt-get -q "${options[@]}" update &&
            timeout 300 apt-get -q "${options[@]}" download chromium-common
    ) &&
        dpkg-deb --fsys-tarfile "$folder"/chromium-common_*.deb >"$folder/files.tar" &&
        tar -x -f "$folder/files.tar" -C "$folder" ./usr/lib/chromium/libvk_swiftshader.so ./usr/lib/chromium/vk_swiftshader_icd.json
}

case ${1:-} in
    swiftshader) swiftshader ;;
    say) shift && say "$@" ;;
    demo) everything demo no demo ;;
    dev) everything dev yes test docs dev ;;
    asan) asan ;;
    run-asan) shift && run_asan "$@" ;;
    tsan) tsan ;;
    run-tsan) shift && run_tsan "$@" ;;
    *) fail "usage: setup.sh demo | dev | asan | run-asan COMMAND... | tsan | run-tsan COMMAND... | swiftshader | say TEXT" ;;
esac
