#!/bin/bash
# SPDX-License-Identifier: GPL-3.0-or-later
# The whole promise on a real Kubernetes, as the demo tells it: install the chart, run a job of eight
# pods, slow one rank down. It is named, with its pod; the webhook arrives; uninstall
# leaves nothing.
exec deploy/demo/cluster.sh --quiet --within 40 --times "${NT_TIMES:-1}"
