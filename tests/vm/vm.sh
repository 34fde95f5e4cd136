#!/bin/bash
# SPDX-License-Identifier: GPL-3.0-or-later
# vm.sh - run one command as root under a stock Debian kernel, in QEMU.
#
#   vm.sh [options] [--] COMMAND [ARG...]
#   vm.sh -p [-k SERIES]         only fetch and prepare the newest such kernel
#
#   -k SERIES   kernel: linux-image-SERIES-amd64 of the enabled apt sources;
#               6.1 (default) and 6.12 on bookworm
#   -m MIB      guest memory (default 1024; 512 does for most)
#   -c CPUS     guest CPUs (default 2)
#   -t SECONDS  give up after this long (default 300)
#   -M MODULES  kernel modules to load first, e.g. "rdma_rxe rdma_ucm"
#   -w DIR      host directory the guest may write, at the same path there
#   -v          show the kernel's console on stderr at the end
#
# The guest sees this machine's root file system read-only over 9p, under a
# tmpfs overlay: what is built and installed here runs there unchanged, and
# what the guest writes vanishes (except in -w DIR).  COMMAND starts in the
# current directory with an empty stdin, this PATH and HOME=/root; its stdout,
# stderr and exit status become this script's.  124: timed out.  125: this
# script failed, or the guest died (its console is then shown).
#
# A real RDMA device, for the real libibverbs and its rxe provider:
#   vm.sh -M rdma_rxe -- sh -c 'rdma link add rxe0 type rxe netdev lo; ibv_devinfo'
#
# Booting needs neither KVM nor root; installing what is missing
# (qemu-system-x86, busybox-static, xz-utils) needs root.  Environment:
#   VM_CACHE    prepared kernels (default ~/.cache/vm-sh; up to 200 MB each)
#   VM_ACCEL    default tcg; with thread=single for kernels but 6.1, which die
#               otherwise: a CPU may run into the int3 of a code patch that
#               the other has ended.  A /dev/kvm that opens need not run a
#               guest (nested machines), so kvm is never chosen unasked.
#   VM_CPU      CPU model (default max,la57=off)
#   VM_APPEND   extra kernel parameters
set -euo pipefail

usage() { sed -n '/^# vm.sh/,/^set /{/^#/s/^# \{0,1\}//p}' "$0" >&2; exit 125; }
say() { echo "vm.sh: $*" >&2; }
die() { say "$@"; exit 125; }

series=6.1 mem=1024 cpus=2 limit=300 modules='' wdir='' verbose='' prepare=''
while getopts k:m:c:t:M:w:vph o; do
	case $o in
	k) series=$OPTARG ;; m) mem=$OPTARG ;; c) cpus=$OPTARG ;;
	t) limit=$OPTARG ;; M) modules=$OPTARG ;; v) verbose=1 ;; p) prepare=1 ;;
	w) wdir=$(realpath -e "$OPTARG") || die "no directory $OPTARG" ;;
	*) usage ;;
	esac
done
shift $((OPTIND - 1))
[ -n "$prepare" ] || [ $# -gt 0 ] || usage
[ "$series" = 6.1 ] || : "${VM_ACCEL:=tcg,thread=single}"
cache=$(realpath -m "${VM_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/vm-sh}")

# ---- packages -----------------------------------------------------------------

update_lists() { apt-get -qq update >/dev/null 2>&1 || :; }

install_missing() {
	local need=()
	command -v qemu-system-x86_64 >/dev/null || need+=(qemu-system-x86)
	{ [ -x /bin/busybox ] && ! ldd /bin/busybox >/dev/null 2>&1; } ||
		need+=(busybox-static)
	command -v xz >/dev/null || need+=(xz-utils)
	[ ${#need[@]} -gt 0 ] || return 0
	say "installing ${need[*]}"
	update_lists
	DEBIAN_FRONTEND=noninteractive apt-get -qq -o DPkg::Lock::Timeout=300 \
		install -y --no-install-recommends "${need[@]}" >/dev/null ||
		die "cannot install ${need[*]}"
}

# ---- the kernel and its modules: unpacked once per version --------------------

offered() {	# $series -> the newest version apt offers
	local meta=linux-image-$series-amd64
	[ "$series" != 6.1 ] || meta=linux-image-amd64	# bookworm's own
	apt-cache depends "$meta" 2>/dev/null |
		sed -n 's/^ *Depends: linux-image-//p' | sed 1q
}

cached() {	# $series -> the newest version unpacked already
	local d
	for d in "$cache/$series".*-amd64; do
		[ ! -e "$d/vmlinux" ] || echo "${d##*/}"
	done | sort -V | tail -n1
}

unpack_vmlinux() {	# bzImage -> ELF; emulated, it would take seconds to do it
	local img=$1 off len magic
	field() { od -An -v -t"$1" -j$(($2)) -N"$3" "$img" | tr -d ' '; }
	off=$((($(field u1 0x1f1 1) + 1) * 512 + $(field u4 0x248 4)))
	len=$(($(field u4 0x24c 4) - 4))	# a 4-byte size follows the stream
	magic=$(field x1 "$off" 4)
	dd if="$img" bs=1M iflag=skip_bytes,count_bytes skip="$off" count="$len" \
		status=none |
		case $magic in
		fd377a58) xz -dc ;;
		28b52ffd) zstd -qdc ;;
		*) false ;;
		esac
}

unpack_kernel() {	# -> $cache/$kver: vmlinux, config, lib/modules
	local tmp=$cache/.$kver.$$ deb mods
	say "fetching linux-image-$kver"
	mkdir -p "$tmp/deb" && cd "$tmp"
	(cd deb && apt-get -qq download "linux-image-$kver" 2>/dev/null) ||
		{ rm -rf "$tmp"; die "cannot download linux-image-$kver"; }
	deb=$(echo deb/*.deb) mods=lib/modules/$kver
	dpkg-deb --fsys-tarfile "$deb" | tar -x --strip-components=1 \
		--exclude='*/drivers/net/wireless' --exclude='*/drivers/net/ethernet' \
		./boot "./$mods"/modules.{builtin,order} \
		"./$mods"/kernel/{arch,crypto,fs,lib,net} \
		"./$mods"/kernel/drivers/{char,infiniband,net,virtio} 2>/dev/null ||
		[ -d "$mods/kernel/drivers/infiniband" ] || die "cannot unpack $deb"
	find lib -name '*.ko.xz' -print0 | xargs -0r -n64 -P"$(nproc)" xz -d
	busybox depmod -b "$tmp" "$kver"
	mv "boot/config-$kver" config
	unpack_vmlinux "boot/vmlinuz-$kver" >vmlinux 2>/dev/null ||
		mv "boot/vmlinuz-$kver" vmlinux		# QEMU boots either
	rm -rf deb boot && cd "$OLDPWD"
	rm -rf "${cache:?}/$kver" && mv "$tmp" "$cache/$kver"
}

module_order() {	# names... -> paths, dependencies first; built-in ones: nothing
	awk -v want="$*" '
	function visit(p,  n, d, i) {
		if (p in seen) return
		seen[p] = 1
		n = split(dep[p], d, " ")
		for (i = 1; i <= n; i++) visit(d[i])
		print p
	}
	{
		p = $1; sub(/:$/, "", p); $1 = ""; dep[p] = $0
		k = p; gsub(/.*\/|\.ko$/, "", k); gsub(/-/, "_", k); path[k] = p
	}
	END {
		n = split(want, w, " ")
		for (i = 1; i <= n; i++) if (w[i] in path) visit(path[w[i]])
	}' modules.dep
}

# ---- what runs in the guest ---------------------------------------------------

make_initrd() {	# DIR: its scratch space; the archive goes to stdout
	mkdir "$1" "$1"/{bin,m,dev,proc,sys}
	cp /bin/busybox "$1/bin/"
	(
		cd "$cache/$kver/lib/modules/$kver"
		module_order virtio_pci virtio_console 9pnet_virtio 9p overlay >"$1/m/order"
		xargs -r -a "$1/m/order" cp -t "$1/m"
	)
	guest_init >"$1/init" && chmod +x "$1/init"
	(cd "$1" && find . | busybox cpio -o -H newc 2>/dev/null)
}

guest_init() {
	cat <<'INIT'
#!/bin/busybox sh
# Process 1, in the initramfs: mounts the host's root and enters it.
/bin/busybox --install -s /bin
mount -t devtmpfs dev /dev; mount -t proc proc /proc; mount -t sysfs sys /sys
while read -r m; do insmod "/m/${m##*/}"; done </m/order
mkdir -p /run /low /up /r
p9=trans=virtio,version=9p2000.L,msize=512000
mount -t 9p -o $p9 run /run && . /run/env || poweroff -f
# cache=loose: this root does not change under the guest, so keep what was read.
mount -t 9p -o $p9,ro,cache=loose root /low || poweroff -f
mount -t tmpfs -o size=75% up /up; mkdir /up/u /up/w
mount -t overlay -o lowerdir=/low,upperdir=/up/u,workdir=/up/w root /r || poweroff -f
mkdir -p /r/lib/modules/$kver /r/mnt/vm
mount --bind /low$kdir/lib/modules/$kver /r/lib/modules/$kver
[ -e /r/sbin/modprobe ] || ln -s /bin/busybox /r/sbin/modprobe
for d in dev proc sys; do mount --move /$d /r/$d; done
mount --move /run /r/mnt/vm
mount -t tmpfs run /r/run
[ -z "$wdir" ] || mount -t 9p -o $p9,cache=loose wdir "/r$wdir" || poweroff -f
exec chroot /r /bin/busybox sh /mnt/vm/boot
INIT
}

guest_boot() {
	cat <<'BOOT'
# Process 1, in the host's root: the rest of the set-up, COMMAND, power off.
b=/bin/busybox
. /mnt/vm/env
$b hostname vm; $b ip link set lo up
$b mkdir -p /dev/pts /dev/shm
$b mount -t devpts pts /dev/pts; $b mount -t tmpfs shm /dev/shm
$b mount -t cgroup2 cgroup /sys/fs/cgroup; $b mount -t bpf bpf /sys/fs/bpf
$b mount -t debugfs debug /sys/kernel/debug; $b mount -t tracefs trace /sys/kernel/tracing
$b ln -sfn /proc/self/fd /dev/fd
for i in 0:stdin 1:stdout 2:stderr; do $b ln -sf fd/${i%:*} /dev/${i#*:}; done
ulimit -l unlimited
port() {	# number -> its device, once the driver has made it
	until set -- $1 /sys/class/virtio-ports/vport*p$1 && [ -c /dev/${2##*/} ]; do
		$b sleep 0.1
	done
	echo /dev/${2##*/}
}
exec </dev/null >$(port 1) 2>$(port 2)
for m in $modules; do /sbin/modprobe $m || echo "vm.sh: no module $m" >&2; done
/bin/bash /mnt/vm/cmd
echo $? >/mnt/vm/rc
exec >/dev/console 2>&1
$b sync
$b poweroff -f
BOOT
}

# ---- main ---------------------------------------------------------------------

install_missing
mkdir -p "$cache"
exec 9>"$cache/.lock"
flock 9
kver=$(cached)
if [ -z "$kver" ] || [ -n "$prepare" ]; then
	kver=$(offered)
	[ -n "$kver" ] || { update_lists; kver=$(offered); }
	[ -n "$kver" ] || die "the enabled apt sources have no kernel $series"
	[ -e "$cache/$kver/vmlinux" ] || unpack_kernel
fi
exec 9>&-
[ -z "$prepare" ] || { echo "$kver"; exit 0; }

run=$(mktemp -d) qemu=''
trap '[ -z "$qemu" ] || kill $qemu 2>/dev/null; rm -rf "$run"' EXIT
trap 'exit 130' INT TERM HUP
mkdir "$run/share"
mkfifo "$run/out" "$run/err"
make_initrd "$run/i" >"$run/initrd"
guest_boot >"$run/share/boot"
printf '%s=%q\n' kver "$kver" kdir "$cache/$kver" wdir "$wdir" modules "$modules" \
	>"$run/share/env"
printf 'export PATH=%q HOME=/root\ncd %q || exit 125\nexec%s\n' \
	"$PATH" "$PWD" "$(printf ' %q' "$@")" >"$run/share/cmd"

share=security_model=none,multidevs=remap
# shellcheck disable=SC2054 # the commas are QEMU's
args=(
	-nodefaults -no-user-config -display none -no-reboot
	-machine q35 -accel "${VM_ACCEL:-tcg}" -cpu "${VM_CPU:-max,la57=off}"
	-smp "$cpus" -m "$mem" -kernel "$cache/$kver/vmlinux" -initrd "$run/initrd"
	-append "console=ttyS0 panic=-1 quiet mitigations=off no_timer_check rdinit=/init ${VM_APPEND:-}"
	-serial "file:$run/console"
	-virtfs "local,path=/,mount_tag=root,readonly=on,$share"
	-virtfs "local,path=$run/share,mount_tag=run,$share"
	-device virtio-serial
	-chardev "file,id=out,path=$run/out" -device virtserialport,chardev=out,nr=1
	-chardev "file,id=err,path=$run/err" -device virtserialport,chardev=err,nr=2
)
[ -z "$wdir" ] || args+=(-virtfs "local,path=$wdir,mount_tag=wdir,$share")

cat "$run/out" & cats=("$!")
cat "$run/err" >&2 & cats+=("$!")
timeout -k 5 "$limit" qemu-system-x86_64 "${args[@]}" </dev/null & qemu=$!
rc=0; wait $qemu || rc=$?; qemu=''
: <>"$run/out" <>"$run/err"	# should QEMU never have opened them
wait "${cats[@]}"

[ -z "$verbose" ] || cat "$run/console" >&2 || :
case $rc in 124 | 137) say "timed out after $limit s"; exit 124 ;; esac
[ -s "$run/share/rc" ] && exit "$(cat "$run/share/rc")"
[ -n "$verbose" ] || tail -n 40 "$run/console" >&2 || :
die "the guest died before the command ended (qemu: $rc)"
