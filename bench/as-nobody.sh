#!/bin/sh
# Starts Chromium ($BENCH_CHROMIUM) with its sandbox on. Root has no sandbox in Chromium, so root becomes `nobody`
# first, who is given the profile folder that the caller made. Descriptors 3 and 4 (the pipe) are handed on.
set -eu
if [ "$(id -u)" != 0 ]; then
  exec "$BENCH_CHROMIUM" "$@"
fi
profile=/nonexistent
for argument in "$@"; do
  case $argument in
    --user-data-dir=*) profile=${argument#--user-data-dir=} ;;
  esac
done
[ ! -d "$profile" ] || chown -R nobody "$profile"
export HOME="$profile" XDG_CONFIG_HOME="$profile" XDG_CACHE_HOME="$profile"
exec setpriv --reuid=nobody --regid="$(id -g nobody)" --clear-groups "$BENCH_CHROMIUM" "$@"
