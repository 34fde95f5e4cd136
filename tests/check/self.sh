#!/bin/bash
# SPDX-License-Identifier: GPL-3.0-or-later
# The checks can fail: each is shown a small tree with one fault, or this tree with a few, and must
# name them.
set -euo pipefail

root=$PWD
tree=$(mktemp -d)
whole=$(mktemp -d)
trap 'rm -rf "$tree" "$whole"' EXIT
mkdir -p "$tree/tests"
cp -r tests/check "$tree/tests/"
cp tests/files.sh "$tree/tests/"
cp LICENSE "$tree/"
bad=0

spdx='/* SPDX-License-Identifier: GPL-3.0-or-later */'

# expect CHECK FILE TEXT WORDS: with FILE holding TEXT the check fails and says WORDS; without, not.
expect() {
  local check=$1 file=$2 text=$3 words=$4 said
  cd "$tree"
  if ! said=$(tests/check/"$check".sh 2>&1); then
    echo "$check.sh fails on a clean tree: $said"
    bad=1
  fi
  mkdir -p "$(dirname "$file")"
  printf '%s\n' "$text" >"$file"
  if said=$(tests/check/"$check".sh 2>&1); then
    echo "$check.sh lets pass: $text"
    bad=1
  elif ! grep -qF -e "$words" <<<"$said"; then
    echo "$check.sh does not say '$words' but: $said"
    bad=1
  fi
  rm "$file"
  cd "$root"
}

expect banned agent/x.c 'int f(char *a) { return atoi(a); }' 'atoi() is banned: use nt_parse_u64()'
expect banned agent/x.c 'void f(char *a) { sprintf(a, "x"); }' 'agent/x.c:1: sprintf() is banned'
expect banned agent/x.c 'void f(void) { exit(1); }' 'exit() outside main.c'
expect banned proto/x.c 'void f(void) { nt_err(1, "x"); }' 'a library does not log'
expect banned agent/x.c 'void f(int i) { assert(i++ < 3); }' 'assert() with a side effect'
expect spdx agent/x.c 'int x;' 'no SPDX-License-Identifier'
expect spdx plugin/x.c "$spdx" "want 'Apache-2.0'"
expect spdx tests/data/x/y.csv '1,2' 'no LICENSE in its directory'
expect includes detect/x.c '#include <time.h>' 'detect is a pure step'
expect includes detect/x.c '#include "common/system/file.h"' 'detect must not include "common/system/file.h"'
expect includes common/base/x.c '#include <pthread.h>' 'common/base is pure'
expect includes agent/host/x.c '#include "agent/steps/x.h"' 'agent/host must not include'
expect names agent/x.c $'struct nt_x {\n};\nenum nt_x {' 'nt_x is defined in several files'
expect names agent/x.c $'struct pair {\n};\nenum pair {' 'pair is defined in several files'
expect names agent/toll.c 'int x;' "'toll' explains nothing"
expect names tests/unit/common/test_common_kafka_shelter.c 'int x;' "'shelter' explains nothing"
expect includes agent/x.c '#include "aggregator/x.h"' 'agent must not include'
expect includes aggregator/x.c '#include "agent/x.h"' 'aggregator must not include'
expect includes common/x.c '#include "proto/wire.h"' 'common must not include'
expect includes bpf/x.bpf.c '#include <linux/bpf.h>' 'never <linux/bpf.h>'
mkdir -p "$tree/cli"
echo '#include "cli/x.h"' >"$tree/cli/y.h"
expect cycles cli/x.c '#include "cli/y.h"' 'cli/y'
rm "$tree/cli/y.h"
expect functions agent/x.c "int f(int i)
{
$(seq -s ';' 79 | tr ';' '\n')
}" 'agent/x.c:1: f() has 82 lines'
expect words docs/x.md 'see /''work/main' 'a path of one machine'
expect words docs/x.md 'TO''DO: later' 'names its issue'
long=$(printf 'word %.0s' {1..24})
expect prose docs/x.md "$long ends, $long" 'docs/x.md:1: a sentence of 49 words: word'
expect prose README.md $'One.\n\n- Two, and\n  three: '"$long, of which some are last." 'README.md:3: a sentence of 32 words'
expect prose docs/x.md '| One. Two. | One. Two. Three. |' 'docs/x.md:1: a cell of 3 sentences: One'
expect prose docs/x.md '[here](y.md)' 'docs/x.md:1: there is no file for the link y.md'
expect prose docs/x.md $'# A `b`\n\n[one](#a-b), [two](#a-c)' 'docs/x.md:3: there is no anchor for the link #a-c'

# A name that only contains a banned word, a comment or a string is no call.
cd "$tree"
mkdir -p agent
cat >agent/x.c <<'C'
/* SPDX-License-Identifier: GPL-3.0-or-later */
/* atoi(x) and exit(1) */
int f(struct s *s) { return s->exit(my_atoi("sprintf(a)")); }
C
tests/check/banned.sh || bad=1

# Two clauses are two sentences, and code is not prose.
mkdir -p docs
printf '%s\n' "$long last: is $long" "" '```' "$long $long" '```' "\`$long $long. $long\`" >docs/x.md
tests/check/prose.sh || bad=1
rm docs/x.md

# ---- arm64 ---------------------------------------------------------------------------------------

cp -r "$root/bpf" "$tree/"
mkdir -p "$tree/plugin"
cp "$root/plugin/gpu_record.h" "$tree/plugin/" # bpf/event.h includes it
cd "$root"
expect arm64 bpf/x.bpf.c $'#if defined(__TARGET_ARCH_arm64)\n#error none\n#endif' 'bpf/x.bpf.c does not compile for arm64'
sed -i.kept 's/user_regs\.regs\[6\]/user_regs.regs[5]/' "$tree/bpf/call.bpf.h"
said=$(cd "$tree" && tests/check/arm64.sh 2>&1) && bad=1
grep -qF 'word 6 of a call on arm64 is not read from x6' <<<"$said" || {
  echo "arm64.sh does not name a wrong register but says: $said"
  bad=1
}

# ---- in a whole tree -----------------------------------------------------------------------------

# What was built is this tree's, and stays so: nothing below builds.
tests/files.sh | grep -v '^tests/\(fuzz/corpus\|data\)/' | tar -c --files-from - | tar -x -C "$whole"
ln -s "$root/build" "$whole/build"
programs=$tree/programs # where NT_BIN says
mkdir "$programs"

# names CHECK WORDS...: it fails there, and says each of the words.
names() {
  local check=$1 said words
  shift
  if said=$(cd "$whole" && NT_BIN=$programs tests/check/"$check".sh 2>&1); then
    echo "$check.sh lets pass what should be: $*"
    bad=1
  fi
  for words; do
    grep -qF -e "$words" <<<"$said" || {
      echo "$check.sh does not say '$words' but: $said"
      bad=1
    }
  done
}

# edit FILE SED...: what is there already is changed, or this script is out of date.
edit() {
  sed -i.kept "${@:2}" "$whole/$1"
  ! cmp -s "$whole/$1" "$whole/$1.kept" || {
    echo "self.sh: nothing to change in $1"
    bad=1
  }
  rm "$whole/$1.kept"
}

edit docs/api/openapi.yaml -e 's|^  /healthz:|  /health:|' -e '0,/in: query/s/in: query/in: header/'
names routes '-GET /healthz' '+GET /health ' '-GET /api/v1/'
edit aggregator/api/api.c -e 's|/profiles", NT_HTTPD_ADMIN|/profiles", NT_HTTPD_READ|'
edit docs/api/openapi.yaml -e "0,/'401'/s/'401'/'499'/"
names routes 'POST /api/v1/profiles changes something and needs no scope admin' \
  'GET /api/v1/slow-ranks does not name 401'

# shellcheck disable=SC2016 # quotes of the page
edit docs/operations.md -e 's/^| `neutracer_agent_windows_total.*/| gone |/' -e 's/^| 4 | /| 44 | /'
cat >"$whole/agent/bad.c" <<'C'
/* SPDX-License-Identifier: GPL-3.0-or-later */
static const struct row rows[] = {{"neutracer_bad", NT_METRIC_COUNTER, "no sentence"}, {"bad_total", NT_METRIC_COUNTER, "One."}};
C
names metrics 'neutracer_bad is COUNTER: counters end in _total' "neutracer_bad: the help is a sentence" \
  'bad_total is no name for a metric' "-| gone |"
rm "$whole/agent/bad.c"

# shellcheck disable=SC2016 # quotes of the page
edit detect/thresholds/thresholds.def -e 's/^NT_REAL(NT_FLEET_SPREAD, 0.10/NT_REAL(NT_FLEET_SPREAD, 0.11/' \
  -e 's/"Test far_is_two_/"Test far_is_too_/' -e 's/"Limit per window, so that no single window decides\."/"no single window"/' \
  -e '/^#undef NT_GROUP/i NT_COUNT(NT_UNUSED, 3, "ranks", "Nothing.", "Chosen")'
cat >"$whole/detect/bad.c" <<'C'
/* SPDX-License-Identifier: GPL-3.0-or-later */
static const double factor = 2.0;
enum {
	FEW = 3,
};
static int f(double x) { return x > 0.7 || x < -17; }
C
# shellcheck disable=SC2016 # quotes of the page
names thresholds '| `NT_FLEET_SPREAD` | 0.11 |' 'there is no test far_is_too_' "z_clip: the reason is a sentence" \
  'NT_UNUSED is a row that nothing uses' 'detect/bad.c:2: 2.0 decides' 'detect/bad.c:4: 3 decides' \
  'detect/bad.c:6: 0.7 decides'
rm "$whole/detect/bad.c"

# shellcheck disable=SC2016 # quotes of the page
edit docs/node-metrics.md -e 's/^| `oom_kills` .*/| gone |/'
edit proto/node_metric.def -e 's/(threads, /(threadz, /' -e 's/"Swap in use\."/"swap"/'
names node_metrics 'threads is sent by the agent and is no row' 'threadz is a row of proto/node_metric.def that the agent never' \
  'swap_used_bytes: the meaning is a sentence' '-| gone |'

edit detect/baseline/fleet_spread.c 's/lower_spread/low_spread/'
edit detect/detect.c 's/^\tnt_imbalance_check,/&\n\tnt_other_check,/'
names ablation 'function lower_spread() of detect/baseline/fleet_spread.c occurs 0 times, not once' \
  "nt_other_check() has no entry '… the whole rule'"

edit CONTRIBUTING.md 's/nt_take(line)/nt_tak(line)/'
names contributing 'nt_tak'

# The agent forgets an option, says too much about a mistake, and is the aggregator in disguise.
for name in neutracer neutracer-aggregator; do ln -s "$root/build/release/bin/$name" "$programs/$name"; done
cat >"$programs/neutracer-agent" <<END
#!/bin/bash
case \$1 in
  --help) "$root/build/release/bin/neutracer-agent" --help | grep -v -e '^  --window-min' ;;
  --no-such-option) printf 'what?\nwhy?\n' >&2 && exit 1 ;;
  *) exec "$root/build/release/bin/neutracer-agent" "\$@" ;;
esac
END
chmod +x "$programs/neutracer-agent"
edit docs/man/neutracer-agent.8 's/window/vvindow/'
echo 'neutracer-agent --no-such-option' >>"$whole/README.md"
names help 'neutracer-agent --help does not list --window-min' "--no-such-option' ends with 1, want 2" \
  "--no-such-option' says 2 lines, want one" "docs/man is not what the programs print" \
  'neutracer-agent has no option --no-such-option' 'exit code 4'

edit deploy/helm/neutracer/values.schema.json 's/"window-min": {/"window-mim": {/'
edit deploy/helm/neutracer/Chart.yaml 's/^version: .*/version: 0.0.0/'
edit deploy/helm/neutracer/monitoring/rules.yaml 's/aggregator_bus_well/aggregator_bus_swell/'
names manifests 'values.schema.json is out of date' 'version is not that of common/base/version.h' \
  'there is no metric neutracer_aggregator_bus_swell'

edit docs/kubernetes.md 's/--set signatures.mode=accept/--set signatures.mod=accept/'
edit docs/operations.md 's/^window-min: /window-mim: /'
names settings 'docs/kubernetes.md: the chart has no value signatures.mod' "unknown key 'window-mim'"

# shellcheck disable=SC2016 # an expression of workflows
edit .github/workflows/ci.yml -e '0,/ # v4/s/@[0-9a-f]* # v4.*/@v4/' -e 's/make lint/make ${{ github.head_ref }}/' \
  -e '0,/timeout-minutes/{/timeout-minutes/d}' -e '0,/persist-credentials/s/false/true/'
names workflows 'not pinned by commit' 'job lint pastes an expression into a script' 'job check has no time limit' \
  'job check keeps the token'
edit CHANGELOG.md 's/^## \[.*\] - .*/## [0.0.9] - today/'
names release "the newest section is of '0.0.9'" "a section is '## [VERSION] - DATE'"

rm "$programs/neutracer-agent" "$programs/neutracer-aggregator"
ln -s "$root/build/release/bin/neutracer-aggregator" "$programs/neutracer-agent"
ln -s "$root/build/release/bin/neutracer-agent" "$programs/neutracer-aggregator"
mkdir "$whole/attic" "$whole/docs/attic"
rm "$whole/proto/neutracer.proto"
printf '/* */\n%.0s' {1..601} >"$whole/common/long.c"
mkdir "$whole/common/many"
for i in {1..41}; do : >"$whole/common/many/$i.h"; done
: >"$whole/bpf/new.bpf.c"
names shape 'attic/ is no room' './docs/attic is empty' 'proto/neutracer.proto is missing' \
  'common/long.c has 601 lines' 'common/many/ has 41 entries' 'neutracer-agent does not link libbpf' 'neutracer-aggregator links libbpf' \
  'build/gen/new.bpf.o is not built'
rm -r "$whole/attic" "$whole/docs/attic" "$whole/common/long.c" "$whole/common/many" "$whole/bpf/new.bpf.c"
cp -p "$root/proto/neutracer.proto" "$whole/proto/"

cat >"$whole/Makefile" <<'MAKE'
Q := @
B := build/release
programs := neutracer-agent neutracer-aggregator neutracer
all:
include tests/make/install.mk
MAKE
edit deploy/systemd/neutracer-agent.service.in 's|@sbindir@|@sbin@|'
edit deploy/systemd/neutracer.tmpfiles 's| 2750 | 2755 |'
names install 'neutracer-agent.service does not start' 'has a place that was not filled in' \
  'tmpfiles.d makes other directories'

edit deploy/systemd/neutracer-agent.service.in 's|^DevicePolicy=closed|DevicePolicy=auto|'
edit deploy/systemd/neutracer-aggregator.service.in '/^ProtectProc=/d'
names units "neutracer-agent.service.in: 'DevicePolicy=closed' is missing" \
  "neutracer-aggregator.service.in: 'ProtectProc=invisible' is missing"

# ---- skips ---------------------------------------------------------------------------------------

# What .ci/run requires is not skipped, whether a program of its own or one test of several says so.
# shellcheck disable=SC2016 # for sed
kinds=$(sed -n 's/.*NT_REQUIRE:-\([a-z,]*\)}.*/\1/p' .ci/run)
[ -n "$kinds" ] || bad=1
for kind in ${kinds//,/ } other; do
  printf '#!/bin/sh\necho "skip: %s: no such thing"\nexit 77\n' "$kind" >"$tree/alone"
  printf '#!/bin/sh\necho 1..1\necho "skip: %s: no such thing"\necho "ok 1 - one # SKIP"\n' "$kind" >"$tree/one"
  chmod +x "$tree/alone" "$tree/one"
  want='0 passed, 2 failed, 0 skipped'
  [ "$kind" != other ] || want='0 passed, 0 failed, 2 skipped'
  said=$(env -u NT_RESULTS -u NT_FAILED NT_REQUIRE="$kinds" tests/run.sh "$tree/alone" "$tree/one" | tail -n 1) || :
  [ "$said" = "$want" ] || {
    echo "a skip for want of '$kind' is counted as: $said"
    bad=1
  }
done

# ---- failures ------------------------------------------------------------------------------------

# What fails each time is a failure, with NT_AGAIN as without; what fails once is listed.
printf '#!/bin/sh\necho broken\nexit 1\n' >"$tree/broken"
# shellcheck disable=SC2016 # for the program that is written
printf '#!/bin/sh\n[ -e "$0.ran" ] || { touch "$0.ran"; echo too late; exit 1; }\n' >"$tree/late"
chmod +x "$tree/broken" "$tree/late"
counts() { # counts WANT VARIABLE=VALUE...
  local want=$1 said
  shift
  rm -f "$tree/late.ran"
  said=$(env -u NT_RESULTS -u NT_FAILED -u NT_AGAIN -u NT_KIND "$@" tests/run.sh "$tree/broken" "$tree/late") && bad=1
  [[ $(tail -n 1 <<<"$said") = "$want" && ($want != 1* || $said == *"unsteady, passed when run again:
  $tree/late (too late)"*) ]] || {
    echo "failures with '$*' are counted as: $said"
    bad=1
  }
}
counts '0 passed, 2 failed, 0 skipped' NT_KIND=bpf
counts '0 passed, 2 failed, 0 skipped' NT_AGAIN=1
counts '1 passed, 1 failed, 0 skipped' NT_AGAIN=1 NT_KIND=bpf

# What is run again takes its place: nothing runs beside it.
# shellcheck disable=SC2016 # for the programs that are written
printf '%s\n' '#!/bin/bash' "mkdir '$tree/busy' || { echo beside another; exit 1; }" 'sleep 0.3' "rmdir '$tree/busy'" \
  '[ "${0##*/}" != first ] || [ -e "$0.ran" ] || { touch "$0.ran"; exit 1; }' >"$tree/first"
chmod +x "$tree/first"
cp "$tree/first" "$tree/second"
cp "$tree/first" "$tree/third"
said=$(env -u NT_RESULTS -u NT_FAILED NT_AGAIN=1 NT_KIND=bpf tests/run.sh "$tree/first" "$tree/second" "$tree/third") || :
[ "$(tail -n 1 <<<"$said")" = '3 passed, 0 failed, 0 skipped' ] || {
  echo "beside one that runs again another is run: $said"
  bad=1
}

# ---- stages --------------------------------------------------------------------------------------

# Stage two of the first group ends in the second group, and three begins when one has ended.
# shellcheck disable=SC2016 # for the program that is written
printf '%s\n' '#!/bin/bash' "cd '$tree'" 'stage=${!#}' 'echo "begin $stage" >>order' \
  'for ((i = 0; i < 100; i++)); do [ "$stage" = two ] && ! grep -q "end three" order || break; sleep 0.1; done' \
  'echo "end $stage" >>order' 'echo 1 0 0 >>"$NT_RESULTS/sum"' >"$tree/make"
chmod +x "$tree/make"
said=$(env -u NT_RESULTS -u NT_FAILED MAKE="$tree/make" tests/run.sh --stages 'one & ~two' three four) || bad=1
want='begin one,end one,begin three,end three,end two,begin four,end four,'
[[ $(tail -n 1 <<<"$said") = '4 passed, 0 failed, 0 skipped' &&
  $(grep -v 'begin two' "$tree/order" | tr '\n' ,) = "$want" ]] || {
  echo "stages of groups have this order: $(tr '\n' , <"$tree/order")"
  echo "$said"
  bad=1
}
exit $bad
