#!/usr/bin/env bash
# Build the kernels with AddressSanitizer and UndefinedBehaviorSanitizer, beside the ordinary build,
# and run tests on them; docs/sanitizer.md says more. Arguments go to pytest.
#
#     tools/sanitize.sh                              the kernels' unit tests and fuzzers
#     MOLDAU_FUZZ_FRAMES=1000000 tools/sanitize.sh   the same, longer
#     tools/sanitize.sh tests/fuzz -k batches        something else
set -euo pipefail
cd "$(dirname "$0")/.."

python=${PYTHON:-.venv/bin/python}
compiler=${CC:-gcc}
build=build/sanitize

export MOLDAU_SANITIZE=address,undefined
"$python" setup.py -q build --build-base "$build" --build-lib "$build/lib"

# The library built here comes before the one that is installed. Python's own allocator would hide
# small overruns, leaks of Python and other libraries are not ours to find, freed memory is set aside
# in bounds because the fuzzers watch it, and libstdc++ must be there when the sanitizer looks for it.
export PYTHONPATH="$PWD/$build/lib"
export PYTHONMALLOC=malloc
export ASAN_OPTIONS=detect_leaks=0:quarantine_size_mb=16:allocator_may_return_null=1
export UBSAN_OPTIONS=halt_on_error=1:print_stacktrace=1
preload="$("$compiler" -print-file-name=libasan.so):$("$compiler" -print-file-name=libstdc++.so.6)"

if [ $# -eq 0 ]; then
    # This one measures memory, which the sanitizer multiplies.
    set -- tests/unit/native tests/fuzz --deselect \
        tests/unit/native/test_columns.py::test_cycles_leak_nothing
fi
# --capture=sys leaves the sanitizer its standard error.
LD_PRELOAD=$preload exec "$python" -m pytest -q --capture=sys "$@"
