# SPDX-License-Identifier: GPL-3.0-or-later
"""Writes communication alone, as sysTrace records it on Ascend devices: a file of markers for each rank.

Four rows share an Id: begin and end of the call on the host, and of the work on the device. Rows that begin
something have its name.
"""
import os

from .clocks import BEGIN, Clocks

HEADER = ("Flag,Id,Kind,Name,SourceKind,Timestamp(ns),msptiObjectId_Ds_DeviceId,msptiObjectId_Ds_StreamId,"
          "msptiObjectId_Pt_ProcessId,msptiObjectId_Pt_ThreadId\n")
NAMES = {"allreduce": "HcclAllReduce", "_allgather_base": "HcclAllGather", "_reduce_scatter_base": "HcclReduceScatter",
         "send": "HcclSend", "recv": "HcclReceive"}


def rows(rank, clocks):
    """The rows of one rank, in the order of their times."""
    host = f"0,4294967295,{4000 + rank.number},{5000 + rank.number}"
    found = []

    def add(flag, number, name, source, time, device):
        stamp = BEGIN * 10**9 + int(clocks.seconds(rank.number, time) * 1e9)
        found.append((stamp, f"{flag},{number},1,{name},{source},{stamp},{device}\n"))

    for number, op in enumerate(rank.ops, 1):
        if not op.collective:
            continue
        name = f"comm:{NAMES[op.name]}!group_name_{op.collective.group}!BFP16!{op.collective.elements}"
        device = f"{rank.number % rank.job.node_size},{op.stream},0,0"
        add(16, number, name, 0, op.called, host)
        add(32, number, "", 0, op.returned, host)
        add(16, number, name, 1, op.start, device)
        add(32, number, "", 1, op.end, device)
    found.sort(key=lambda row: row[0])
    return [text for _, text in found]


def write(play, truth, directory):
    job = truth.job
    clocks = Clocks(job)
    for rank in play.ranks:
        if rank.number == truth.lost:
            continue
        path = os.path.join(directory, f"hccl_activity-{job.node_name(job.node(rank.number))}-.{rank.number}.csv")
        with open(path, "w", encoding="ascii") as out:
            out.write(HEADER)
            out.writelines(rows(rank, clocks))
    return directory, [BEGIN + end for end in truth.ends]
