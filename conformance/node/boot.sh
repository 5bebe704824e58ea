# The first process of a machine in namespaces: mounts its disk from $1, then lives as long as its input is open.
set -e
mount --bind "$1/lib" /var/lib
mount --bind "$1/log" /var/log
mount -t tmpfs -o mode=755 run /run
# The kubelet sets these for the whole kernel; here it finds them as it wants them, and the host keeps its own.
for pair in vm/overcommit_memory=1 vm/panic_on_oom=0 kernel/panic=10 kernel/panic_on_oops=1 \
  kernel/keys/root_maxkeys=1000000 kernel/keys/root_maxbytes=25000000; do
  seen=/run/sysctl/${pair%=*}
  mkdir -p "$(dirname "$seen")"
  echo "${pair#*=}" >"$seen"
  mount --bind "$seen" "/proc/sys/${pair%=*}"
done
mount --make-rshared /
ip link set lo up
echo 1 >/proc/sys/net/ipv4/ip_forward
echo booted
# Ends with whoever started it, and everything with it; until then the shell reaps what others leave behind.
cat >/dev/null
