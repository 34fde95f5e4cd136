#!/bin/bash
# SPDX-License-Identifier: GPL-3.0-or-later
# The option table, --help, docs/man and the completions agree, mistakes end in one clear line and
# the named exit code, and the docs name no option that does not exist.
set -euo pipefail

bad=0
report() {
  echo "$1"
  bad=1
}

# ends WANT COMMAND...: one line on stderr, nothing on stdout, exit code WANT.
ends() {
  local want=$1 got=0
  shift
  "$@" >"$out" 2>"$err" </dev/null || got=$?
  [ "$got" -eq "$want" ] || report "'$*' ends with $got, want $want"
  [ ! -s "$out" ] || report "'$*' writes to stdout: $(head -n 1 "$out")"
  [ "$(wc -l <"$err")" -eq 1 ] || report "'$*' says $(wc -l <"$err") lines, want one: $(cat "$err")"
}

out=$(mktemp) err=$(mktemp) broken=$(mktemp)
trap 'rm -f "$out" "$err" "$broken"' EXIT
printf 'no-such-key: 1\n' >"$broken"
bin=${NT_BIN:-build/release/bin}

programs=$(find "$bin" -maxdepth 1 -type f -perm -u+x -printf '%f\n' 2>/dev/null | sort)
[ -n "$programs" ] || {
  echo "skip: build: no program is built"
  exit 77
}

for name in $programs; do
  program=$bin/$name
  section=8
  [ "$name" != neutracer ] || section=1
  man=docs/man/$name.$section

  "$program" --print-options >"$out"
  help=$("$program" --help) manual=$("$program" --print-man)
  bash_words=$("$program" --print-completion bash) zsh_words=$("$program" --print-completion zsh)
  [ -s "$out" ] || report "$name has no options"
  while IFS=$'\t' read -r option env key allowed default text; do
    grep -qE -e "^  --$option( |\$)" <<<"$help" || report "$name --help does not list --$option"
    grep -qF -e "--$option" <<<"${manual//\\-/-}" || report "$name: the manual does not name --$option"
    grep -qwF -e "--$option" <<<"$bash_words" || report "$name: no bash completion of --$option"
    grep -qF -e "--$option" <<<"$zsh_words" || report "$name: no zsh completion of --$option"
    case $env in
      -) [ "$key" = - ] || report "$name: --$option has a key but no variable" ;;
      *)
        [ "$env" = "NT_$(tr 'a-z-' 'A-Z_' <<<"$option")" ] || report "$name: --$option has the variable $env"
        grep -qF "Environment: $env." <<<"$manual" || report "$name: the manual does not name $env"
        ;;
    esac
    case $text in
      '' | [A-Z]*[a-z]\ * | *.) report "$name: help of --$option starts lower case and has no full stop: '$text'" ;;
    esac
    if [ -z "$allowed" ] || [ -z "$default" ]; then
      report "$name: --$option lists no allowed values or no default"
    fi
  done <"$out"
  dup=$(cut -f1 "$out" | sort | uniq -d)
  [ -z "$dup" ] || report "$name: listed twice: $dup"
  bash -n <<<"$bash_words" || report "$name: the bash completion is no bash"
  [ "$("$program" --version)" = "$name $(sed -n 's/^#define NT_VERSION "\(.*\)"$/\1/p' common/version.h)" ] ||
    report "$name --version says '$("$program" --version)'"
  cmp -s "$man" - <<<"$manual" || report "$man is not what $name --print-man prints: run 'make man'"
  if command -v man >/dev/null; then
    warnings=$(man --warnings -l "$man" 2>&1 >/dev/null || :)
    [ -z "$warnings" ] || report "$man: $warnings"
  fi

  ends 2 "$program" --no-such-option
  command=()
  [ "$name" != neutracer ] || command=(jobs)
  ends 3 "$program" --config "$broken" "${command[@]}"
  ends 3 "$program" --config /no/such/file "${command[@]}"

  # What the docs show people to type.
  while IFS=: read -r file line option; do
    case $option in --help | --version | --config | --print-*) continue ;; esac
    plain=${option#--} plain=${plain#no-}
    cut -f1 "$out" | grep -qxE -e "${option#--}|$plain" || report "$file:$line: $name has no option $option"
  done < <(grep -noE "(^|[^a-z-])$name( [^\`#|]*)?" README.md CONTRIBUTING.md docs/*.md /dev/null 2>/dev/null |
    grep -E ":[^a-z]*$name( |\$)" |
    awk -F: '{ n = split($3, w, /[ =`|\[\]]/); for (i = 1; i <= n; i++) if (w[i] ~ /^--[a-z][a-z-]*$/) print $1 ":" $2 ":" w[i] }')
done
exit $bad
