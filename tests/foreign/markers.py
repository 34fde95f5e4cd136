# SPDX-License-Identifier: GPL-3.0-or-later
"""Writes what openEuler's sysTrace leaves of a job: communication alone, a file of markers per rank.

An operation has four rows of one Id: begin and end of the call on the host, and of the work on the device. Only
the rows that begin something hold its name.
"""
import os

HEADER = ("Flag,Id,Kind,Name,SourceKind,Timestamp,msptiObjectId_Ds_DeviceId,msptiObjectId_Ds_StreamId,"
          "msptiObjectId_Pt_ProcessId,msptiObjectId_Pt_ThreadId\n")
BASE = 1749084000 * 10**9  # ns
NAMES = {"AllReduce": "HcclAllReduce", "AllGather": "HcclAllGather", "ReduceScatter": "HcclReduceScatter",
         "SendRecv": "HcclBatchSendRecv"}


def group_names(job):
    """The name that the library gives a group: its leader's address, and a number."""
    rng = job.stream("names")
    names = {}
    for i, (group, members) in enumerate(job.groups.items()):
        leader = job.node_name(job.node(members[0]))
        plain = {"world": "hccl_world_group"}.get(group)
        names[group] = plain or f"{leader}%enp189s0f0_60{i % 100:03d}_{i}_{1749083000 + rng.randrange(900)}"
    return names


def rows(rank, job, names, last):
    """The rows of one rank, in the order of their times."""
    clock, skew = job.clock[job.node(rank.number)], job.skew[job.node(rank.number)]
    device = rank.number % job.node_size

    def stamp(time):
        return BASE + int((1 + time * (1 + skew) + clock) * 1e9)

    found, number, streams = [], 0, {}
    for op in rank.ops:
        if not op.transfers or op.step >= last:
            continue
        number += 1
        stream = streams.setdefault(op.stream.name, 3 + len(streams))
        name = f"comm:{NAMES[op.name]}!{names[op.label['group']]}!bfp16!{op.label['nelems']}"
        for text, source, time in ((name, 0, op.called), ("", 0, op.launched), (name, 1, op.start), ("", 1, op.end)):
            found.append((stamp(time), f"{16 if text else 32},{number},1,{text},{source},{stamp(time)},{device},"
                                       f"{stream if source else 0},{7000 + rank.number},{7000 + rank.number}\n"))
    found.sort(key=lambda row: row[0])
    return [text for _, text in found]


def write(ranks, truth, directory):
    job = truth.job
    names = group_names(job)
    for rank in ranks:
        if rank.number == job.lost:
            continue
        last = job.cut[1] if job.cut and job.cut[0] == rank.number else job.steps
        node = job.node_name(job.node(rank.number))
        with open(os.path.join(directory, f"hccl_activity-{node}-.{rank.number}.csv"), "w", encoding="ascii") as out:
            out.write(HEADER)
            out.writelines(rows(rank, job, names, last))
    return directory, [BASE / 1e9 + 1 + end for end in truth.ends]
