#!/usr/bin/env bash
# Prints the first Python of 3.11.4 or newer that can make virtual environments; PYTHON names one explicitly.
set -euo pipefail
candidates=(python3.11 python3.12 python3.13 python3 python3.14 python)
if [ -n "${PYTHON:-}" ]; then candidates=("$PYTHON"); fi
found=""
for name in "${candidates[@]}"; do
  path=$(command -v "$name") || continue
  version=$("$path" -c 'import sys; print("%d.%d.%d" % sys.version_info[:3])' 2>/dev/null) || continue
  if ! "$path" -c 'import sys; sys.exit(sys.version_info < (3, 11, 4))'; then
    found="$found $name ($version, too old)"
  elif ! "$path" -c 'import ensurepip, venv' 2>/dev/null; then
    found="$found $name ($version, without venv: on Debian and Ubuntu install python${version%.*}-venv)"
  else
    printf '%s\n' "$path"
    exit 0
  fi
done
cat >&2 <<MESSAGE
error: no usable Python of 3.11.4 or newer; looked for: ${candidates[*]}
  found:${found:- none}
  install Python 3.11.4 or newer (it unpacks archives safely), or name one: PYTHON=/path/to/python3.11 make ...
  (conda users: see envs/README.md)
MESSAGE
exit 1
