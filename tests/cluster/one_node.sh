#!/usr/bin/env bash
# A real Slurm of one node, for tests:   tests/cluster/one_node.sh check | up | down | with COMMAND...
#
# It needs the programs of Slurm and munge (Debian, Ubuntu: apt-get install --no-install-recommends slurm-wlm munge)
# and nothing else: no root, no systemd, no file outside its folder (.slurm, or $ONE_NODE). Its daemons belong to
# whoever starts it, and a Slurm that this machine is part of neither sees it nor is seen by it.
set -euo pipefail
export PATH="$PATH:/usr/sbin:/sbin"
FOLDER="${ONE_NODE:-$PWD/.slurm}"
CONF="$FOLDER/slurm.conf"
PROGRAMS=(munged slurmctld slurmd sbatch srun squeue scontrol)
DAEMONS=(slurmd slurmctld munged) # in the order of stopping
GPUS=(/dev/null /dev/zero) # any character device will do
CLIENTS=(sbatch srun squeue scontrol scancel sinfo sacct sacctmgr sshare)

check() {
  local missing=()
  for program in "${PROGRAMS[@]}"; do
    command -v "$program" >/dev/null || missing+=("$program")
  done
  if [ "${#missing[@]}" != 0 ]; then
    echo "missing: ${missing[*]}. As root: apt-get install --no-install-recommends slurm-wlm munge"
    return 1
  fi
  for device in "${GPUS[@]}"; do
    [ -c "$device" ] || { echo "$device is no device here; Slurm takes it for a GPU"; return 1; }
  done
}

up() {
  check
  down
  rm -rf "$FOLDER"
  mkdir -p "$FOLDER"/{state,spool,log,run,bin}
  chmod 755 "$FOLDER" "$FOLDER"/run
  head -c 128 /dev/urandom >"$FOLDER/munge.key"
  chmod 400 "$FOLDER/munge.key"
  munged --force --num-threads=2 --socket="$FOLDER/run/munge.socket" --key-file="$FOLDER/munge.key" \
    --pid-file="$FOLDER/run/munged.pid" --log-file="$FOLDER/log/munged.log" --seed-file="$FOLDER/munge.seed"
  configure
  clients
  slurmctld -f "$CONF"
  slurmd -f "$CONF"
  for _ in $(seq 50); do
    "$FOLDER/bin/sinfo" -h -o '%T' 2>/dev/null | grep -q idle && return
    sleep .2
  done
  echo "Slurm did not come up; its logs:" >&2
  tail -n 20 "$FOLDER"/log/*.log >&2
  return 1
}

# Two pretended GPUs and four cores, whatever this machine has. The partition
# 'urgent' preempts the jobs of the others. A job that takes more memory than it asked for is killed.
configure() {
  local host user
  host="$(hostname -s)"
  user="$(id -un)"
  echo "NodeName=$host Name=gpu File=$(IFS=,; echo "${GPUS[*]}")" >"$FOLDER/gres.conf"
  cat >"$CONF" <<CONF
ClusterName=onenode
SlurmctldHost=$host(127.0.0.1)
SlurmUser=$user
SlurmdUser=$user
AuthType=auth/munge
CredType=cred/munge
AuthInfo=socket=$FOLDER/run/munge.socket,cred_expire=5
SlurmctldPort=${ONE_NODE_PORT:-16817}
SlurmdPort=$((${ONE_NODE_PORT:-16817} + 1))
SlurmctldPidFile=$FOLDER/run/slurmctld.pid
SlurmdPidFile=$FOLDER/run/slurmd.pid
SlurmctldLogFile=$FOLDER/log/slurmctld.log
SlurmdLogFile=$FOLDER/log/slurmd.log
StateSaveLocation=$FOLDER/state
SlurmdSpoolDir=$FOLDER/spool
SlurmdParameters=config_overrides
ProctrackType=proctrack/pgid
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core_Memory
MpiDefault=none
MailProg=/bin/true
JobAcctGatherType=jobacct_gather/linux
JobAcctGatherFrequency=task=1
JobAcctGatherParams=OverMemoryKill,UsePss
AccountingStorageType=accounting_storage/none
JobCompType=jobcomp/filetxt
JobCompLoc=$FOLDER/log/jobcomp.log
ReturnToService=2
SchedulerParameters=batch_sched_delay=0,sched_interval=2
MinJobAge=300
EnforcePartLimits=ALL
KillWait=10
DefMemPerCPU=200
GresTypes=gpu
NodeName=$host NodeAddr=127.0.0.1 CPUs=4 RealMemory=6000 Gres=gpu:2 State=UNKNOWN
PreemptType=preempt/partition_prio
PreemptMode=REQUEUE
PartitionName=cpu Nodes=$host Default=YES MaxTime=INFINITE State=UP PriorityTier=1 PreemptMode=REQUEUE
PartitionName=gpu Nodes=$host MaxTime=INFINITE State=UP PriorityTier=1 PreemptMode=REQUEUE
PartitionName=urgent Nodes=$host MaxTime=INFINITE State=UP PriorityTier=10 PreemptMode=OFF
CONF
}

# Snakemake's jobs lose every SLURM_ variable on the way to their srun, so the commands themselves know their cluster.
clients() {
  local real
  for client in "${CLIENTS[@]}"; do
    real="$(command -v "$client")" || continue
    printf '#!/bin/sh\nexport SLURM_CONF=%q\nexec %q "$@"\n' "$CONF" "$real" >"$FOLDER/bin/$client"
    chmod 755 "$FOLDER/bin/$client"
  done
}

# Each daemon removes its own pid file when it ends.
down() {
  local file
  for daemon in "${DAEMONS[@]}"; do
    file="$FOLDER/run/$daemon.pid"
    [ -s "$file" ] || continue
    kill "$(cat "$file")" 2>/dev/null || rm -f "$file"
    for _ in $(seq 100); do
      [ -e "$file" ] || break
      sleep .1
    done
  done
}

case "${1:-}" in
check | up | down) "$1" ;;
with)
  shift
  trap down EXIT
  up
  PATH="$FOLDER/bin:$PATH" "$@"
  ;;
*)
  sed -n '2,/^set/p' "$0" | sed -n 's/^# \{0,1\}//p' >&2
  exit 2
  ;;
esac
