#!/bin/bash
# SPDX-License-Identifier: GPL-3.0-or-later
# `make install DESTDIR=` puts programs, manual pages and completions where they belong, and nothing else.
set -euo pipefail

bad=0
report() {
  echo "$1"
  bad=1
}

root=$(mktemp -d)
trap 'rm -rf "$root"' EXIT
unset MAKEFLAGS MAKELEVEL
make -s install DESTDIR="$root" PREFIX=/usr >"$root.log" 2>&1 || report "make install fails: $(cat "$root.log")"
rm -f "$root.log"

for name in neutracer-agent neutracer-aggregator neutracer; do
  directory=sbin section=8
  [ "$name" != neutracer ] || directory=bin section=1
  [ -x "$root/usr/$directory/$name" ] || report "no $directory/$name"
  [ -s "$root/usr/share/man/man$section/$name.$section" ] || report "no manual of $name"
  bash -n "$root/usr/share/bash-completion/completions/$name" || report "the completion of $name is no bash"
  grep -q "^#compdef $name\$" "$root/usr/share/zsh/site-functions/_$name" || report "no zsh completion of $name"
  [ "$("$root/usr/$directory/$name" --version | cut -d' ' -f1)" = "$name" ] || report "$name does not run"
done
while IFS= read -r file; do
  case ${file#"$root"} in
    /usr/sbin/* | /usr/bin/* | /usr/share/man/man[18]/* | /usr/share/bash-completion/completions/* | \
      /usr/share/zsh/site-functions/_* | /usr/lib/systemd/system/*.service) ;;
    *) report "${file#"$root"} should not be installed" ;;
  esac
done < <(find "$root" -type f)

# Completing really offers the commands and the options of one.
words() {
  bash --norc -c '. "$1"; COMP_WORDS=("${@:2}"); COMP_CWORD=$(($# - 2)); _nt_neutracer; echo "${COMPREPLY[@]}"' \
    bash "$root/usr/share/bash-completion/completions/neutracer" "$@"
}
case " $(words neutracer s) " in *' slow-ranks '*) ;; *) report "'neutracer s' completes to '$(words neutracer s)'" ;; esac
case " $(words neutracer jobs --js) " in *' --json '*) ;; *) report "'neutracer jobs --js' completes to nothing" ;; esac
exit $bad
