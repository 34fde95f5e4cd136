/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "common/bus/bus_options.h"

const struct nt_opt_form nt_bus_url_form = {nt_bus_url_is_sound, NT_BUS_URL_HELP};
