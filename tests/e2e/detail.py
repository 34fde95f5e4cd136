#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""Reads records of single calls as any other program may: Kafka's by kcat, decoded by protoc.

    kcat -b SERVERS -C -q -e -t neutracer.detail.v1 -f '%R%s' | detail.py RANKS CALL,... TAG=VALUE...

Checks that each record has its tags, with these values or with any; that there are records of these calls and of
scheduling; that each communicator's all-reduces are recorded once each; and that calls, weighted by their
probabilities, are as many as were counted. No code of this project decodes anything here.
"""
import collections
import re
import subprocess
import sys

TOKEN = re.compile(r'\s*(?:([a-z_0-9]+)\s*\{|([a-z_0-9]+):\s*("(?:[^"\\]|\\.)*"|\S+)|(\}))')


def parse(text):
    """protoc's text format: dictionaries of lists."""
    stack = [collections.defaultdict(list)]
    at = 0
    while True:
        match = TOKEN.match(text, at)
        if not match:
            return stack[0]
        at = match.end()
        message, name, value, end = match.groups()
        if message:
            inner = collections.defaultdict(list)
            stack[-1][message].append(inner)
            stack.append(inner)
        elif end:
            stack.pop()
        else:
            stack[-1][name].append(value.strip('"'))


def one(message, name, default=''):
    return message[name][-1] if message[name] else default


def envelopes(data):
    at = 0
    while at + 4 <= len(data):
        size = int.from_bytes(data[at:at + 4], 'big')
        value = data[at + 4:at + 4 + size]
        at += 4 + size
        text = subprocess.run(['protoc', '--decode=neutracer.v1.Envelope', '-I', 'proto',
                               'proto/neutracer.proto'], input=value, check=True, stdout=subprocess.PIPE).stdout
        yield size, parse(text.decode())


def main():
    ranks = int(sys.argv[1])
    wanted_calls = sys.argv[2].split(',')
    tags = dict(pair.split('=', 1) for pair in sys.argv[3:])
    numbers = collections.defaultdict(list)
    calls, kinds, seen, lost, weight, levels = (collections.Counter() for _ in range(6))
    found, records, size = set(), 0, 0
    example = None
    for bytes_, envelope in envelopes(sys.stdin.buffer.read()):
        size += bytes_
        for detail in envelope['detail']:
            rank = detail['rank'][0]
            for tag, wanted in tags.items():
                value = one(rank, tag)
                if not value or wanted not in ('', value):
                    sys.exit(f'a record has the {tag} "{value}", not "{wanted}"')
            number = int(one(rank, 'rank', '0'))
            if one(rank, 'rank_known') != 'true' or number >= ranks:
                sys.exit(f'a record is of rank {number}')
            levels[one(detail, 'level', '0')] += 1
            found.add(number)
            for count in detail['count']:
                seen[one(count, 'kind')] += int(one(count, 'seen', '0'))
                lost[one(count, 'kind')] += int(one(count, 'lost', '0'))
            for record in detail['record']:
                probability = float(one(record, 'probability', '0'))
                if not 0 < probability <= 1:
                    sys.exit(f'a record has the probability {probability}')
                records += 1
                calls[one(record, 'call')] += 1
                kinds[one(record, 'kind')] += 1
                weight[one(record, 'kind')] += 1 / probability
                if one(record, 'call') == wanted_calls[0]:
                    example = example or (dict(rank), dict(record))
                if one(record, 'call') == 'ncclAllReduce':
                    numbers[number, one(record, 'comm')].append((int(one(record, 'number', '0')), probability))
    # The level is the one when the message was sent: it may have ended just before.
    if set(levels) - {'0', '1'} or levels['0'] > ranks:
        sys.exit(f'messages are of levels {dict(levels)}')
    if found != set(range(ranks)):
        sys.exit(f'records are of ranks {sorted(found)}')
    # Between two that were recorded for certain none is missing: a period of sampling has others on both sides.
    for (rank, comm), of in numbers.items():
        of.sort()
        for (before, chance), (after, next_chance) in zip(of, of[1:]):
            if after == before or (after != before + 1 and chance == 1 and next_chance == 1):
                sys.exit(f'rank {rank}, communicator {comm}: all-reduce {after} follows {before}')
    whole = sum(chance == 1 for of in numbers.values() for _, chance in of)
    if whole < 0.9 * sum(map(len, numbers.values())):
        sys.exit(f'{whole} all-reduces were recorded for certain')
    if not kinds['DETAIL_KIND_SCHED']:
        sys.exit('there is no record of a scheduling event')
    for call in wanted_calls:
        if not calls[call]:
            sys.exit(f'there is no record of {call}, only of {dict(calls)}')
    for kind in seen:
        estimate = weight[kind] + lost[kind]
        # What is sent in the last second is counted later, or earlier.
        if seen[kind] > 1000 and abs(estimate - seen[kind]) > 0.1 * seen[kind]:
            sys.exit(f'{kind}: {estimate:.0f} calls by the records, {seen[kind]} by the counts')
    print('example:', example)
    print(f'{records} records in {size} bytes, {size / records:.1f} a record:',
          ', '.join(f'{kind} {n}' for kind, n in sorted(kinds.items())))
    print('lost:', dict(lost), 'seen:', dict(seen))


if __name__ == '__main__':
    main()
