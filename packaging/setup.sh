#!/usr/bin/env bash
# Installs what is missing, through the system's own package manager, and says what it does. Where all is there, it
# does nothing.
#
#   packaging/setup.sh [run] [test] [bench]
#
# run: Chromium, and Xvfb on Linux. test: what the tests use beside. bench: what the bench uses beside.
set -euo pipefail

say() { printf 'setup: %s\n' "$*"; }
fail() {
  printf 'setup: %s\n' "$*" >&2
  exit 1
}
has() { command -v "$1" >/dev/null 2>&1; }

as_root() {
  if [ "$(id -u)" = 0 ]; then
    "$@"
  elif has sudo; then
    sudo "$@"
  else
    fail "this needs root, and there is no sudo: run as root: $*"
  fi
}

# A Chromium that the daemon can start: a real binary, not a script and not a snap's stub.
chromium_path() {
  local path
  for path in /usr/lib/chromium/chromium /usr/lib64/chromium-browser/chromium-browser \
    /usr/lib64/chromium/chromium /usr/lib/chromium-browser/chromium-browser \
    /opt/google/chrome/chrome \
    /Applications/Chromium.app/Contents/MacOS/Chromium \
    "/Applications/Google Chrome for Testing.app/Contents/MacOS/Google Chrome for Testing"; do
    if [ -x "$path" ] && [ "$(head -c 2 "$path" | tr -d '\0')" != '#!' ]; then
      printf '%s\n' "$path"
      return
    fi
  done
  return 1
}

# What a part needs, as words that each manager has its own packages for.
wanted() {
  local part
  for part in "$@"; do
    case $part in
      run)
        chromium_path >/dev/null || echo chromium
        [ "$(uname -s)" != Linux ] || has Xvfb || echo xvfb
        ;;
      test)
        has curl || echo curl
        [ "$(uname -s)" != Linux ] || has sudo || echo sudo
        [ "$(uname -s)" != Linux ] || has pgrep || echo procps
        [ "$(uname -s)" != Linux ] || has ip || [ -x /usr/sbin/ip ] || echo ip
        ;;
      bench)
        has node || echo node
        has npm || echo npm
        [ "$(uname -s)" != Linux ] || has setpriv || echo setpriv
        [ "$(uname -s)" != Linux ] || has tinyproxy || echo tinyproxy
        [ "$(uname -s)" != Linux ] || has squid || [ -x /usr/sbin/squid ] || echo squid
        ;;
      *) fail "there is no part '$part'; the parts are run, test and bench" ;;
    esac
  done
}

manager() {
  local name
  for name in apt-get dnf pacman zypper brew; do
    if has "$name"; then
      printf '%s\n' "$name"
      return
    fi
  done
  fail "no known package manager (apt-get, dnf, pacman, zypper, brew): install by hand: $*"
}

# The packages of a word. Debian's Chromium draws no text without fonts and finds no GPU without Mesa, and only recommends
# both.
packages_of() {
  case $1:$2 in
    apt-get:chromium) echo chromium chromium-sandbox fonts-liberation libgl1-mesa-dri ;;
    apt-get:node) echo nodejs ;;
    apt-get:ip) echo iproute2 ;;
    dnf:xvfb | zypper:xvfb) echo xorg-x11-server-Xvfb ;;
    dnf:ip) echo iproute ;;
    dnf:procps | pacman:procps) echo procps-ng ;;
    dnf:node) echo nodejs ;;
    dnf:npm) echo nodejs-npm ;;
    pacman:xvfb) echo xorg-server-xvfb ;;
    pacman:node) echo nodejs ;;
    pacman:ip | zypper:ip) echo iproute2 ;;
    zypper:node) echo nodejs-default ;;
    zypper:npm) echo npm-default ;;
    brew:npm) echo node ;;
    *:setpriv) echo util-linux ;;
    *) echo "$2" ;;
  esac
}

# Ubuntu's `chromium` is a stub that installs a snap, and a snap's Chromium can be started neither in a namespace of ours
# nor under another account.
refuse_snap() {
  # shellcheck source=/dev/null
  if [ "$(. /etc/os-release && printf '%s' "$ID")" = ubuntu ]; then
    fail "Ubuntu has Chromium as a snap only, which cannot be used here.
setup: install Google Chrome (.deb) or another real Chromium, then give its path with --chromium PATH"
  fi
}

# Lists of packages may never have been fetched on this machine, or be too old to find what they name.
apt_install() {
  if ! apt-cache show "$@" >/dev/null 2>&1; then
    say "apt-get update"
    as_root apt-get update -q
  fi
  if ! as_root env DEBIAN_FRONTEND=noninteractive apt-get install -qy --no-install-recommends "$@"; then
    say "apt-get update, and once more"
    as_root apt-get update -q
    as_root env DEBIAN_FRONTEND=noninteractive apt-get install -qy --no-install-recommends "$@"
  fi
}

install() {
  local manager=$1
  shift
  say "installing with $manager: $*"
  case $manager in
    apt-get) apt_install "$@" ;;
    dnf) as_root dnf install -y "$@" ;;
    pacman) as_root pacman -Sy --needed --noconfirm "$@" ;;
    zypper) as_root zypper --non-interactive install "$@" ;;
    brew) brew_install "$@" ;;
  esac
}

# Chromium is a cask of Homebrew; the rest are formulas. Homebrew is never run as root.
brew_install() {
  local name
  for name in "$@"; do
    if [ "$name" = chromium ]; then
      brew install --cask chromium
    else
      brew install "$name"
    fi
  done
}

main() {
  local parts=("$@") words manager word
  [ ${#parts[@]} -gt 0 ] || parts=(run)
  words=$(wanted "${parts[@]}")
  if [ -z "$words" ]; then
    say "all is there"
    return
  fi
  # shellcheck disable=SC2086 # words without spaces, one a line
  set -- $words
  manager=$(manager "$@") || exit 1
  local packages=()
  for word in "$@"; do
    [ "$word" != chromium ] || [ "$manager" != apt-get ] || refuse_snap
    # shellcheck disable=SC2207 # names without spaces or stars
    packages+=($(packages_of "$manager" "$word"))
  done
  install "$manager" "${packages[@]}"
  words=$(wanted "${parts[@]}")
  [ -z "$words" ] || fail "still missing after the installation: ${words//$'\n'/, }"
  say "done"
}

main "$@"
