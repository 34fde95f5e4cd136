#!/bin/bash
# SPDX-License-Identifier: GPL-3.0-or-later
# A real Apache Kafka for tests: KRaft, one node or three, up in a few seconds. Needs Java 17 and, once
# per version, Maven.
#
#   kafka.sh up [--version V] [--nodes N] [--secure] [--logs DIR]   start; prints the bootstrap
#                                  addresses. DIR is where node N keeps its data, in DIR/N
#   kafka.sh tool CLASS ARG...     run a tool, e.g. org.apache.kafka.tools.TopicCommand --list
#   kafka.sh kill [NODE]           end it as a power cut would; start brings it back on the same data
#   kafka.sh stop [NODE]           end it in order
#   kafka.sh start [NODE]          NODE is 1, 2, ...; without one: all
#   kafka.sh freeze|thaw NODE      cut it off: its connections stay, and nothing answers
#   kafka.sh down                  stop all and delete
#   kafka.sh fetch [V]             only fetch the jars; prints where they are
#
# NT_KAFKA: state folder (/tmp/neutracer-kafka). NT_KAFKA_PORT: the first port (19092); node N uses the
# ten from NT_KAFKA_PORT + 10 * (N - 1): +0 clients, +1 controllers, +2 brokers and tools, and with
# --secure, where clients need TLS and a password (SCRAM-SHA-512 or PLAIN): +3 TLS with a client certificate, +4 TLS with an expired
# one of the broker. NT_KAFKA_HOST: the address (127.0.0.1). NT_KAFKA_JARS: where jars are kept (~/.cache/neutracer-kafka).
#
# --secure leaves in NT_KAFKA/tls: ca.pem, client.pem and client.key, expired.pem and expired.key,
# other-ca.pem (that signed nothing); users neutracer (may do all) and stranger (may do nothing), both
# with the password in NT_KAFKA/tls/password.
set -euo pipefail

here=$(cd "$(dirname "$0")" && pwd)
state=${NT_KAFKA:-/tmp/neutracer-kafka}
base=${NT_KAFKA_PORT:-19092}
host=${NT_KAFKA_HOST:-127.0.0.1}
jars=${NT_KAFKA_JARS:-$HOME/.cache/neutracer-kafka}
password=one-for-the-tests

die() {
  echo "kafka.sh: $*" >&2
  exit 1
}

port() { echo $((base + 10 * ($1 - 1) + ${2:-0})); }
nodes() { seq "$(cat "$state/nodes")"; }
classes() { echo "$jars/$(cat "$state/version")/*"; }
# A broker asks for the name of its own address at each SASL connection: where no name server is
# reached, as in a network namespace, that took six seconds of one of its three network threads.
virtual_machine=(-XX:+UseSerialGC -XX:TieredStopAtLevel=1 "-Djava.io.tmpdir=$state/tmp"
  "-Djdk.net.hosts.file=$state/hosts")
run_java() {
  java "${virtual_machine[@]}" \
    -Dorg.slf4j.simpleLogger.defaultLogLevel=warn -cp "$(classes)" "$@"
}
# Not a zombie either.
alive() { [ -f "$state/$1/pid" ] && [[ $(ps -o stat= -p "$(cat "$state/$1/pid")") == [^Z]* ]]; }

bootstrap() {
  local node list=()
  for node in $(nodes); do list+=("$host:$(port "$node" "$1")"); done
  (
    IFS=,
    echo "${list[*]}"
  )
}

# Two tests may start at once, and fetch the same.
fetch() {
  [ ! -d "$jars/$1" ] || return 0
  command -v mvn >/dev/null || die "Maven is needed once, to fetch Kafka $1"
  mkdir -p "$jars"
  (
    flock 9
    [ ! -d "$jars/$1" ] || exit 0
    rm -rf "$jars/$1.part"
    mvn -q -B -f "$here/pom.xml" "-Dkafka.version=$1" \
      org.apache.maven.plugins:maven-dependency-plugin:3.6.1:copy-dependencies \
      -DincludeScope=runtime "-DoutputDirectory=$jars/$1.part" >&2
    mv "$jars/$1.part" "$jars/$1"
  ) 9>"$jars/lock"
}

# certificate NAME CA SUBJECT DAYS...: NAME.pem and NAME.key, signed by CA. With two DAYS it was valid
# from so many days ago until the other.
certificate() {
  local name=$1 ca=$2 subject=$3 from to
  from=$(date -u -d "${4:-1 day ago}" +%Y%m%d%H%M%SZ)
  to=$(date -u -d "${5:-1 year}" +%Y%m%d%H%M%SZ)
  openssl req -newkey rsa:2048 -nodes -keyout "$name.key" -out "$name.csr" -subj "/CN=$subject"
  mkdir "$name.ca"
  : >"$name.ca/index.txt"
  cat >"$name.ca/conf" <<CONF
[ca]
default_ca = it
[it]
database = $name.ca/index.txt
new_certs_dir = $name.ca
rand_serial = yes
default_md = sha256
policy = any
x509_extensions = names
[any]
commonName = supplied
[names]
subjectAltName = IP:$host, DNS:localhost
CONF
  openssl ca -batch -config "$name.ca/conf" -cert "$ca.pem" -keyfile "$ca.key" -in "$name.csr" \
    -out "$name.pem" -notext -startdate "$from" -enddate "$to"
  rm -rf "$name.ca" "$name.csr"
}

make_secrets() {
  local ca
  mkdir "$state/tls"
  cd "$state/tls"
  for ca in ca other-ca; do
    openssl req -x509 -newkey rsa:2048 -nodes -days 3650 -keyout "$ca.key" -out "$ca.pem" -subj "/CN=$ca"
  done
  certificate broker ca localhost
  certificate expired-broker ca localhost '2 days ago' '1 day ago'
  certificate client ca neutracer
  certificate expired ca neutracer '2 days ago' '1 day ago'
  cat broker.key broker.pem ca.pem >broker.store
  cat expired-broker.key expired-broker.pem ca.pem >expired-broker.store
  echo "$password" >password
  cd "$OLDPWD"
}

write_properties() {
  local node=$1 count=$2 secure=$3 dir=$state/$1 voters=() i client=PLAINTEXT
  for ((i = 1; i <= count; i++)); do voters+=("$i@$host:$(port "$i" 1)"); done
  local listeners
  listeners="CONTROLLER://$host:$(port "$node" 1),INTERNAL://$host:$(port "$node" 2)"
  [ -z "$secure" ] || client=SASL_SSL
  listeners+=",CLIENT://$host:$(port "$node")"
  [ -z "$secure" ] || listeners+=",MTLS://$host:$(port "$node" 3),EXPIRED://$host:$(port "$node" 4)"
  mkdir -p "$dir"
  cat >"$dir/server.properties" <<CONF
process.roles=broker,controller
node.id=$node
controller.quorum.voters=$(
    IFS=,
    echo "${voters[*]}"
  )
listeners=$listeners
advertised.listeners=${listeners#*,}
controller.listener.names=CONTROLLER
inter.broker.listener.name=INTERNAL
listener.security.protocol.map=CONTROLLER:PLAINTEXT,INTERNAL:PLAINTEXT,CLIENT:$client,MTLS:SSL,EXPIRED:SSL
log.dirs=${4:-$state}/$node/logs
num.partitions=6
auto.create.topics.enable=true
offsets.topic.replication.factor=$count
offsets.topic.num.partitions=1
transaction.state.log.replication.factor=$count
transaction.state.log.min.isr=1
group.initial.rebalance.delay.ms=0
group.min.session.timeout.ms=1000
broker.heartbeat.interval.ms=200
broker.session.timeout.ms=1000
replica.lag.time.max.ms=3000
log.retention.check.interval.ms=1000
log.segment.delete.delay.ms=1000
log.cleaner.backoff.ms=1000
CONF
  [ -n "$secure" ] || return 0
  cat >>"$dir/server.properties" <<CONF
sasl.enabled.mechanisms=SCRAM-SHA-512,PLAIN
ssl.keystore.type=PEM
ssl.keystore.location=$state/tls/broker.store
ssl.truststore.type=PEM
ssl.truststore.location=$state/tls/ca.pem
listener.name.mtls.ssl.client.auth=required
listener.name.expired.ssl.keystore.type=PEM
listener.name.expired.ssl.keystore.location=$state/tls/expired-broker.store
listener.name.client.scram-sha-512.sasl.jaas.config=org.apache.kafka.common.security.scram.ScramLoginModule required;
listener.name.client.plain.sasl.jaas.config=org.apache.kafka.common.security.plain.PlainLoginModule required user_neutracer="$password" user_stranger="$password";
authorizer.class.name=org.apache.kafka.metadata.authorizer.StandardAuthorizer
super.users=User:ANONYMOUS;User:CN=neutracer
allow.everyone.if.no.acl.found=false
CONF
}

up() {
  local version=3.9.1 count=1 secure='' logs='' node scram=()
  while [ $# -gt 0 ]; do
    case $1 in
      --version) version=$2 && shift ;;
      --nodes) count=$2 && shift ;;
      --secure) secure=1 ;;
      --logs) logs=$2 && shift ;;
      *) die "unknown option '$1'" ;;
    esac
    shift
  done
  [ ! -e "$state" ] || die "$state is in use: run '$0 down' first"
  fetch "$version"
  mkdir -p "$state/tmp"
  echo "$version" >"$state/version"
  echo "$count" >"$state/nodes"
  printf '%s\n' "127.0.0.1 localhost" "$host broker" >"$state/hosts"
  if [ -n "$secure" ]; then
    make_secrets >"$state/tls.log" 2>&1 || {
      tail -n 5 "$state/tls.log" >&2
      die "cannot make certificates"
    }
    scram=(--add-scram "SCRAM-SHA-512=[name=neutracer,password=$password]"
      --add-scram "SCRAM-SHA-512=[name=stranger,password=$password]")
  fi
  for ((node = 1; node <= count; node++)); do
    write_properties "$node" "$count" "$secure" "$logs"
    run_java kafka.tools.StorageTool format -t MkU3OEVBNTcwNTJENDM2Qg -c "$state/$node/server.properties" \
      --ignore-formatted "${scram[@]}" >"$state/$node/format.log" 2>&1 || {
      cat "$state/$node/format.log" >&2
      die "format failed"
    }
  done
  start ''
  if [ -n "$secure" ]; then
    tool kafka.admin.AclCommand --add --allow-principal User:neutracer --operation All \
      --topic '*' --group '*' --cluster >"$state/acl.log" 2>&1 ||
      tool org.apache.kafka.tools.AclCommand --add --allow-principal User:neutracer --operation All \
        --topic '*' --group '*' --cluster >"$state/acl.log" 2>&1 || {
      cat "$state/acl.log" >&2
      die "cannot set ACLs"
    }
  fi
  bootstrap 0
}

launch() {
  local dir=$state/$1
  ! alive "$1" || die "node $1 is running already"
  : >"$dir/server.log"
  java -Xms128m -Xmx512m "${virtual_machine[@]}" -cp "$(classes)" \
    kafka.Kafka "$dir/server.properties" >>"$dir/server.log" 2>&1 </dev/null &
  echo $! >"$dir/pid"
}

await() {
  local dir=$state/$1 left=600
  until grep -q 'Kafka Server started' "$dir/server.log"; do
    if ! alive "$1" || ((left-- == 0)); then
      tail -n 5 "$dir/server.log" >&2
      die "node $1 did not come up"
    fi
    sleep 0.1
  done
}

start() {
  local node
  for node in ${1:-$(nodes)}; do launch "$node"; done
  for node in ${1:-$(nodes)}; do await "$node"; done
}

stop() {
  local node
  for node in ${1:-$(nodes)}; do
    ! alive "$node" || kill "$(cat "$state/$node/pid")"
    ! alive "$node" || kill -CONT "$(cat "$state/$node/pid")" # who is frozen ends when thawed
  done
  for node in ${1:-$(nodes)}; do
    for _ in {1..150}; do
      alive "$node" || break
      sleep 0.1
    done
    ! alive "$node" || kill -9 "$(cat "$state/$node/pid")"
  done
}

cut_power() {
  local node
  for node in ${1:-$(nodes)}; do
    kill -9 "$(cat "$state/$node/pid")"
    while alive "$node"; do sleep 0.1; done
  done
}

tool() {
  local class=$1
  shift
  run_java "$class" --bootstrap-server "$(bootstrap 2)" "$@"
}

case ${1:-} in
  up)
    shift
    up "$@"
    ;;
  start | stop) "$1" "${2:-}" ;;
  kill) cut_power "${2:-}" ;;
  fetch)
    fetch "${2:-3.9.1}"
    echo "$jars/${2:-3.9.1}"
    ;;
  freeze) kill -STOP "$(cat "$state/${2:?NODE}/pid")" ;;
  thaw) kill -CONT "$(cat "$state/${2:?NODE}/pid")" ;;
  tool)
    shift
    tool "${@:?CLASS}"
    ;;
  down)
    [ ! -f "$state/nodes" ] || stop ''
    rm -rf "$state"
    ;;
  *)
    sed -n '3,/^set /{/^set /d;s/^# \{0,1\}//;p}' "$0"
    exit 64
    ;;
esac
