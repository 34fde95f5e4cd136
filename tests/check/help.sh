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

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
bin=${NT_BIN:-build/release/bin}
version=$(sed -n 's/^#define NT_VERSION "\(.*\)"$/\1/p' common/base/version.h)

[ -n "$(find "$bin" -name 'neutracer*' -type f 2>/dev/null)" ] || {
  echo "no program is built"
  exit 1
}

# ends WANT COMMAND...: one line on stderr, nothing on stdout, exit code WANT.
ends() {
  local want=$1 got=0
  shift
  "$@" >"$work/out" 2>"$work/err" </dev/null || got=$?
  [ "$got" -eq "$want" ] || report "'$*' ends with $got, want $want"
  [ ! -s "$work/out" ] || report "'$*' writes to stdout: $(head -n 1 "$work/out")"
  [ "$(wc -l <"$work/err")" -eq 1 ] ||
    report "'$*' says $(wc -l <"$work/err") lines, want one: $(cat "$work/err")"
}

# check_table PROGRAM [COMMAND]: one option table. Matches by the shell itself: there are 130 options.
check_table() {
  local program=("$bin/$1" "${@:2}") name="$*" table help manual words option env key allowed default text
  local variable space=$'[ \n]'
  table=$work/${name// /-}.options
  "${program[@]}" --print-options >"$table"
  help=$("${program[@]}" --help) manual=$("${program[@]}" --print-man)
  manual=${manual//\\-/-}
  words=$("$bin/$1" --print-completion bash)
  words=" ${words//[^a-z0-9-]/ } " help=$'\n'$help$'\n'
  [[ $words == *' --help '* ]] || report "$name: no bash completion"
  [ -s "$table" ] || report "$name has no options"
  while IFS=$'\t' read -r option env key allowed default text; do
    [[ $help == *$'\n'"  --$option"$space* ]] || report "$name --help does not list --$option"
    [[ $manual == *"--$option\\fR"* ]] || report "$name: the manual does not name --$option"
    [[ $words == *" --$option "* ]] || report "$name: no bash completion of --$option"
    if [ "$env" = - ]; then
      [ "$key" = - ] || report "$name: --$option has a key but no variable"
    else
      variable=NT_${option//-/_}
      [ "$env" = "${variable^^}" ] || report "$name: --$option has the variable $env"
      [ "$key" = "$option" ] || report "$name: --$option has the key $key"
      [[ $manual == *"Environment: $env."* ]] || report "$name: the manual does not name $env"
    fi
    if [ -z "$allowed" ] || [ -z "$default" ]; then
      report "$name: --$option lists no allowed values or no default"
    fi
    case $text in
      '' | [A-Z][a-z]* | *.) report "$name: help of --$option starts lower case and has no full stop: '$text'" ;;
    esac
  done <"$table"
  [ -z "$(cut -f1 "$table" | sort | uniq -d)" ] || report "$name: an option is there twice"
  for code in 0 2 3; do
    [[ $help == *$'\n'"  $code  "* ]] || report "$name --help does not tell exit code $code"
  done

  while read -r code text; do
    grep -qF "| $code | $text" docs/operations.md ||
      report "$name: exit code $code, $text, is not in docs/operations.md"
  done < <(sed -n '/^Exit status:/,$s/^  \([0-9]\)  /\1 /p' <<<"$help")

  ends 2 "${program[@]}" --no-such-option
  ends 3 "${program[@]}" --config "$work/broken" "${needs[@]}"
  ends 3 "${program[@]}" --config /no/such/file "${needs[@]}"
}

printf 'no-such-key: 1\n' >"$work/broken"
for path in "$bin"/neutracer*; do
  name=${path##*/}
  [ "$("$path" --version)" = "$name $version" ] || report "$name --version says '$("$path" --version)'"
  "$path" --print-completion bash | bash -n || report "$name: the bash completion is no bash"
  commands=$("$path" --help | sed -n '/^Commands:/,/^$/s/^  \([a-z-]*\) .*/\1/p')
  if [ -n "$commands" ]; then
    ends 2 "$path"
    ends 2 "$path" no-such-command
    for command in $commands; do
      needs=()
      [ "$command" != analyze ] || needs=(/no/such/recording)
      [ "$command" != topics ] || needs=(check)
      [ "$command" != node-key ] || needs=(NODE)
      [ "$command" != links ] || needs=(JOB)
      [ "$command" != profile ] || needs=(JOB/0)
      check_table "$name" "$command"
    done
    # For the docs, an option of any command is one of the program.
    cat "$work/$name"-*.options >"$work/$name.options"
  else
    needs=()
    check_table "$name"
  fi
done

# says CODE TEXT COMMAND...: ends so, and the line holds the text.
says() {
  local text=$2
  ends "$1" "${@:3}"
  grep -qF -- "$text" "$work/err" || report "'${*:3}' says '$(cat "$work/err")', want '$text'"
}
# A bad value is named by its source.
printf 'server: ftp://x\n' >"$work/server.yaml"
url="'ftp://x' is not the URL of an aggregator, such as http://127.0.0.1:9480"
says 2 "--server: $url" "$bin/neutracer" jobs --server ftp://x
says 3 "NT_SERVER: $url" env NT_SERVER=ftp://x "$bin/neutracer" jobs
says 3 "$work/server.yaml: server: $url" "$bin/neutracer" jobs --config "$work/server.yaml"
printf 'json: true\n' >"$work/json.yaml"
says 3 "'json' is no key: --json is an option of the command line only" "$bin/neutracer" jobs --config "$work/json.yaml"
# Filters are checked before anything is connected.
for command in incidents jobs slow-ranks; do
  says 2 "--since: 'yesterday' is not a time such as 2026-11-21T03:00:00Z" "$bin/neutracer" $command --since yesterday
done
says 2 "--at: 'now' is not a time such as" "$bin/neutracer" slow-ranks --at now
says 2 "--state: 'foo' is not one of firing, resolved" "$bin/neutracer" incidents --state foo
says 2 "--severity: 'high' is not one of info, warning, critical" "$bin/neutracer" incidents --severity high
says 2 "--class: 'comput' is not one of compute, network, host, " "$bin/neutracer" slow-ranks --class comput
status=0
"$bin/neutracer" incidents --server http://127.0.0.1:1 --since 2026-11-21T03:00:00+02:00 --state firing --class '' >/dev/null 2>&1 || status=$?
[ "$status" -eq 7 ] || report "incidents with sound filters ends with $status, want 7"
# A missing argument is named.
says 2 'alert: test needs the name of a receiver' "$bin/neutracer" alert test
says 2 "alert: there is no 'tset': test RECEIVER" "$bin/neutracer" alert tset page
says 2 'not given: JOB/RANK' "$bin/neutracer" profile
says 2 "'llm' is not JOB/RANK, such as llm/3" "$bin/neutracer" profile llm
# An error of a bus names it.
says 5 "bus 'spool:$work/none': there is no such spool" "$bin/neutracer" detail --bus "spool:$work/none" --seconds 1s
says 5 "bus 'spool:$work/broken': Not a directory" "$bin/neutracer" detail --bus "spool:$work/broken" --seconds 1s

# offers COMMAND WORD...: what bash offers for the last word.
offers() {
  # shellcheck disable=SC2016 # for the inner shell
  bash -c '. <("$1" --print-completion bash); shift
    COMP_WORDS=(neutracer "$@") COMP_CWORD=$#; _nt_neutracer; echo "${COMPREPLY[*]}"' _ "$bin/neutracer" "$@"
}
# expect WANT COMMAND WORD...
expect() {
  local want=$1 got
  shift
  got=$(offers "$@")
  [ "$got" = "$want" ] || report "completion of '$*' offers '$got', want '$want'"
}
# words SCHEMA: those that the REST interface knows.
words() { sed -n "/^    $1:/,/enum/s/.*enum: \[\(.*\)\]/\1/p" docs/api/openapi.yaml | tr -d ,; }
expect "$(words Class)" incidents --class ''
expect "$(words Class)" slow-ranks --class ''
expect "$(words IncidentState)" incidents --state ''
expect "$(words Severity)" incidents --severity ''
expect "$(words JobState)" jobs --state ''
expect compute incidents --class com
expect "$("$bin/neutracer" --help | sed -n '/^Commands:/,/^$/s/^  \([a-z-]*\) .*/\1/p' | xargs)" help ''
expect incidents help inc
expect help hel
expect '' help jobs ''
expect 'acknowledge unacknowledge silence unsilence annotate' incidents ''
expect 'create check list' topics ''
expect test alert ''
expect --partitions topics --part
expect '' incidents acknowledge x
expect '' incidents --job ''
expect '' jobs --server ''
expect '' incidents --since ''
expect LICENSE jobs --token-file LICEN

# The pages in the tree are those that the programs print.
mkdir "$work/man"
tests/man.sh "$bin" "$work/man"
if ! diff -rq docs/man "$work/man" >"$work/diff" 2>&1; then
  cat "$work/diff"
  report "docs/man is not what the programs print: run 'make man'"
fi
if command -v man >/dev/null; then
  for page in "$work"/man/*; do
    warnings=$(MANROFFSEQ='' MANWIDTH=120 man --warnings -E UTF-8 -l "$page" 2>&1 >/dev/null || :)
    [ -z "$warnings" ] || report "$page: $warnings"
  done
fi

# What the docs show people to type: options behind a program's name. Those of helm and kubectl are
# their own, but for what follows a `--`. (tests/check/manifests.sh compares the chart's values.)
tests/files.sh '\.md$' | grep -v '^tests/data/' >"$work/docs"
while IFS= read -r file; do
  mkdir -p "$work/typed/$(dirname "$file")"
  sed -E 's/\b(helm|kubectl) .* -- //; s/\b(helm|kubectl) .*//' "$file" >"$work/typed/$file"
done <"$work/docs"
# shellcheck disable=SC2016 # the backquote ends what is typed
while IFS=: read -r file line text; do
  name=$(grep -oE '^neutracer(-agent|-aggregator)?' <<<"$text")
  while IFS= read -r option; do
    case $option in --help | --version | --config | --print-completion | --print-config) continue ;; esac
    plain=${option#--}
    cut -f1 "$work/$name.options" | grep -qxE -e "$plain|${plain#no-}" ||
      report "$file:$line: $name has no option $option"
  done < <(grep -oE -e '--[a-z][a-z-]*' <<<"$text")
done < <(cd "$work/typed" &&
  xargs -r grep -noE '\bneutracer(-agent|-aggregator)? [^|`#;&]*--[^|`#;&]*' /dev/null <"$work/docs")
exit $bad
