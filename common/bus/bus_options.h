/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Option table rows for authentication at the brokers of a Kafka bus. */
#ifndef NT_COMMON_BUS_BUS_OPTIONS_H
#define NT_COMMON_BUS_BUS_OPTIONS_H

#include "common/bus/bus.h"
#include "common/options/opt.h"

#define NT_BUS_URL_HELP "spool:DIR or kafka://HOST:PORT,...[/PREFIX]"

/* For options that name a bus. */
extern const struct nt_opt_form nt_bus_url_form;

/* For the table of a config `type` with a struct nt_bus_security named `field`. */
/* clang-format off */
#define NT_BUS_SECURITY_OPTIONS(type, field)                                                       \
	{.name = "bus-ca-file", .kind = NT_OPT_STRING, .offset = offsetof(type, field.ca_file),    \
	 .arg = "FILE",                                                                            \
	 .help = "CA certificates (PEM) of the brokers; enables TLS"},                             \
	{.name = "bus-cert-file", .kind = NT_OPT_STRING, .offset = offsetof(type, field.cert_file),\
	 .arg = "FILE", .help = "certificate chain (PEM), if the brokers require one"},            \
	{.name = "bus-key-file", .kind = NT_OPT_STRING, .offset = offsetof(type, field.key_file),  \
	 .arg = "FILE", .help = "private key (PEM) of that certificate"},                          \
	{.name = "bus-user", .kind = NT_OPT_STRING, .offset = offsetof(type, field.user),          \
	 .arg = "NAME", .help = "user name at the brokers (SASL)"},                                \
	{.name = "bus-password-file", .kind = NT_OPT_STRING,                                       \
	 .offset = offsetof(type, field.password_file), .arg = "FILE",                             \
	 .help = "file with the password of that user; read again when it changes"},               \
	{.name = "bus-sasl-mechanism", .kind = NT_OPT_CHOICE,                                      \
	 .offset = offsetof(type, field.mechanism), .def = "SCRAM-SHA-512",                        \
	 .choices = "SCRAM-SHA-512 SCRAM-SHA-256 PLAIN",                                           \
	 .help = "SASL mechanism; PLAIN needs TLS"}
/* clang-format on */

#endif
