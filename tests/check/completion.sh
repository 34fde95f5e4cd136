#!/bin/bash
# SPDX-License-Identifier: GPL-3.0-or-later
# The completions of zsh and fish, in the shells themselves: what they offer for a command line is what
# the option tables have. (tests/check/help.sh tries those of bash.)
set -euo pipefail

bad=0
report() {
  echo "$1"
  bad=1
}

for shell in zsh fish; do
  command -v "$shell" >/dev/null || {
    echo "skip: shells: $shell is not installed"
    exit 77
  }
done
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
bin=$(realpath "${NT_BIN:-build/release/bin}")
mkdir -p "$work/home/files/folder" "$work/site" "$work/fish"
touch "$work/home/files/token"
programs=(neutracer neutracer-agent neutracer-aggregator)
for name in "${programs[@]}"; do
  # As `make install` writes it.
  { echo "#compdef $name" && "$bin/$name" --print-completion zsh && echo "_nt_${name//-/_} \"\$@\""; } >"$work/site/_$name"
  zsh -n "$work/site/_$name" || report "$name: the completion is no zsh"
  "$bin/$name" --print-completion fish >"$work/fish/$name.fish"
  fish --no-config --no-execute "$work/fish/$name.fish" || report "$name: the completion is no fish"
done

# ---- fish ----------------------------------------------------------------------------------------

# Each line is completed in one process. A candidate is printed as "LINE NUMBER<TAB>CANDIDATE".
cat >"$work/ask.fish" <<'END'
for file in $argv[1]/*.fish; source $file; end
cd $argv[2]
set number 0
while read --line line
  set number (math $number + 1)
  for candidate in (complete -C "$line"); printf '%s\t%s\n' $number (string split -f1 \t -- $candidate); end
end
END
fish_lines=() fish_wants=()
expect_fish() { # expect_fish LINE WANT...: all that is offered, in any order
  fish_lines+=("$1")
  fish_wants+=("$(printf '%s\n' "${@:2}" | sort | xargs)")
}
options() { # options PROGRAM [COMMAND]: those of its table, and those of every program
  { "$bin/$1" "${@:2}" --print-options | cut -f1 && printf '%s\n' config help version; } | sed 's/^/--/'
}
commands=$("$bin/neutracer" --help | sed -n '/^Commands:/,/^$/s/^  \([a-z-]*\) .*/\1/p')
# shellcheck disable=SC2086 # words
expect_fish 'neutracer ' $commands help
# shellcheck disable=SC2086 # words
expect_fish 'neutracer help ' $commands
expect_fish 'neutracer help jobs ' ''
expect_fish 'neutracer topics ' create check list
expect_fish 'neutracer incidents un' unacknowledge unsilence
expect_fish 'neutracer incidents acknowledge ' ''
expect_fish 'neutracer alert ' test
expect_fish 'neutracer slow-r' slow-ranks
for name in $commands; do
  # shellcheck disable=SC2046 # words
  expect_fish "neutracer $name --" $(options neutracer "$name")
done
for name in neutracer-agent neutracer-aggregator; do
  # shellcheck disable=SC2046 # words
  expect_fish "$name --" $(options "$name")
  expect_fish "$name " ''
done
# shellcheck disable=SC2046 # words
expect_fish 'neutracer incidents --state ' $(sed -n "/^    IncidentState:/,/enum/s/.*enum: \[\(.*\)\]/\1/p" docs/api/openapi.yaml | tr -d ,)
expect_fish 'neutracer incidents --class com' compute
expect_fish 'neutracer jobs --server ' ''
expect_fish 'neutracer jobs --token-file files/tok' files/token
expect_fish 'neutracer analyze files/to' files/token
expect_fish 'neutracer slow-ranks files/to' ''
expect_fish 'neutracer-aggregator --tls-ce' --tls-cert-file
printf '%s\n' "${fish_lines[@]}" |
  HOME=$work/home XDG_DATA_HOME=$work/home XDG_CONFIG_HOME=$work/home fish --no-config "$work/ask.fish" "$work/fish" "$work/home" >"$work/fish.out"
for i in "${!fish_lines[@]}"; do
  got=$(awk -F'\t' -v n=$((i + 1)) '$1 == n { print $2 }' "$work/fish.out" | sort | xargs)
  [ "$got" = "${fish_wants[i]}" ] || report "fish: '${fish_lines[i]}' offers '$got', want '${fish_wants[i]}'"
done

# ---- zsh -----------------------------------------------------------------------------------------

# zsh completes in its line editor alone: in a terminal, where the line that a Tab leaves is printed.
cat >"$work/home/.zshrc" <<END
fpath=($work/site \$fpath)
autoload -Uz compinit
compinit -u -d $work/home/dump
cd $work/home
PROMPT='ready> '
LISTMAX=10000
show-line() { print -r -- "<\$BUFFER>" >>$work/zsh.out; BUFFER=; zle redisplay }
zle -N show-line
bindkey '^I' expand-or-complete
bindkey '^X' show-line
END
zsh_lines=() zsh_wants=()
expect_zsh() { # expect_zsh LINE WANT: the line after a Tab, without blanks at its end
  zsh_lines+=("$1")
  zsh_wants+=("$2")
}
expect_zsh 'neutracer slow-r' 'neutracer slow-ranks'
expect_zsh 'neutracer help slow-r' 'neutracer help slow-ranks'
expect_zsh 'neutracer incidents ack' 'neutracer incidents acknowledge'
expect_zsh 'neutracer topics cr' 'neutracer topics create'
expect_zsh 'neutracer alert te' 'neutracer alert test'
expect_zsh 'neutracer jobs --js' 'neutracer jobs --json'
expect_zsh 'neutracer incidents --class=com' 'neutracer incidents --class=compute'
expect_zsh 'neutracer jobs --token-file=files/tok' 'neutracer jobs --token-file=files/token'
expect_zsh 'neutracer jobs --server=files/tok' 'neutracer jobs --server=files/tok'
expect_zsh 'neutracer analyze files/tok' 'neutracer analyze files/token'
expect_zsh 'neutracer slow-ranks files/tok' 'neutracer slow-ranks files/tok'
expect_zsh 'neutracer-agent --window-mi' 'neutracer-agent --window-min='
expect_zsh 'neutracer-aggregator --no-such' 'neutracer-aggregator --no-such'
: >"$work/zsh.out"
printf '%s\n' "${zsh_lines[@]}" >"$work/zsh.in"
timeout 60 python3 - "$work" <<'END' || report "zsh: it stopped answering"
import os, pty, select, sys, time
work = sys.argv[1]
pid, fd = pty.fork()
if pid == 0:
    os.environ.update(HOME=f"{work}/home", ZDOTDIR=f"{work}/home", TERM="dumb", LC_ALL="C")
    os.execvp("zsh", ["zsh", "-i"])
def lines():
    with open(f"{work}/zsh.out") as out:
        return out.read().count("\n")
def until(done):
    while not done():
        if select.select([fd], [], [], 0.02)[0]:
            seen.extend(os.read(fd, 65536))
seen = bytearray()
until(lambda: b"ready> " in seen)
for count, line in enumerate(open(f"{work}/zsh.in").read().splitlines(), 1):
    os.write(fd, line.encode() + b"\t\x18")
    until(lambda: lines() >= count)
os.write(fd, b"exit\r")
END
for i in "${!zsh_lines[@]}"; do
  got=$(sed -n "$((i + 1))s/ *>\$/>/p" "$work/zsh.out")
  [ "$got" = "<${zsh_wants[i]}>" ] || report "zsh: '${zsh_lines[i]}' becomes '$got', want '${zsh_wants[i]}'"
done
exit $bad
