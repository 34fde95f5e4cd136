# SPDX-License-Identifier: GPL-3.0-or-later
# Stacks of real interpreters: tests/e2e/operation/test_stacks.sh.

check_e2e_needs += $(B)/test/agent/stack/test_agent_stack_live
