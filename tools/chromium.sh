#!/bin/sh
# Makes sure that there is a Chromium for the tests of the console; Debian's is used as it is.
set -eu
command -v chromium >/dev/null && exit 0
if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
    echo "installing chromium"
    apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends chromium >/dev/null
    exit 0
fi
echo "error: there is no \`chromium\`, and the tests of the console look at it with one." >&2
echo "hint: install it, on Debian and Ubuntu with \`apt-get install chromium\` as root." >&2
exit 1
