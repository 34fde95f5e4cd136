/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Signatures of bus messages: HMAC-SHA256 with a key per node. Aggregators share one secret, from
 * which they derive the key of any node; a node has only its own key, and cannot sign for another.
 *
 * Key of a node: HMAC(secret, "neutracer-node-v1" NUL node). The signature covers topic, bus key
 * and encoded message. It follows the message as field 8 of its envelope, which programs without
 * signature support skip.
 */
#ifndef NT_COMMON_BUS_NODE_KEY_H
#define NT_COMMON_BUS_NODE_KEY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/buf.h"
#include "common/base/cleanup.h"
#include "common/bus/bus.h"

enum {
	NT_NODE_KEY_ID = 4, /* bytes that identify the secret a key is derived from */
	NT_NODE_KEY_MAC = 32,
	NT_NODE_KEY_TRAILER = 2 + NT_NODE_KEY_ID + NT_NODE_KEY_MAC, /* behind each message */
	NT_NODE_KEY_SECRETS = 4, /* in one file: the first derives keys, all are accepted */
	NT_NODE_KEY_SECRET_MIN = 32, /* bytes */
	NT_NODE_KEY_SECRET_MAX = 128,
	NT_NODE_KEY_NODE = 255, /* bytes of a node's name */
	NT_NODE_KEY_LINE = 384, /* size of a key as text */
};

struct nt_node_key_error {
	char text[256]; /* one line, without secrets */
};

/* ---- node side ------------------------------------------------------------------------------ */

struct nt_node_key {
	uint8_t id[NT_NODE_KEY_ID];
	uint8_t secret[NT_NODE_KEY_MAC];
};

/* "neutracer-node-key-v1 NODE ID KEY", both in hex. -EINVAL for a name with blanks, or too long. */
NT_MUST_CHECK int nt_node_key_print(const struct nt_node_key *key, const char *node,
				    char ret_line[NT_NODE_KEY_LINE]);
/* -EINVAL: malformed, or the key of another node. */
NT_MUST_CHECK int nt_node_key_parse(const char *text, size_t len, const char *node,
				    struct nt_node_key *ret_key,
				    struct nt_node_key_error *ret_error);
NT_MUST_CHECK int nt_node_key_read(const char *path, const char *node, struct nt_node_key *ret_key,
				   struct nt_node_key_error *ret_error);

struct nt_signer;

/* The key is copied. */
NT_MUST_CHECK int nt_signer_new(const struct nt_node_key *key, struct nt_signer **ret_signer);
void nt_signer_free(struct nt_signer *signer);
NT_DEFINE_AUTO(nt_signer, nt_signer_free)

/*
 * Appends the signature to the message of record, the only content of buf. -EMSGSIZE: over the cap.
 */
NT_MUST_CHECK int nt_signer_sign(struct nt_signer *signer, const struct nt_bus_record *record,
				 struct nt_buf *buf);

/* ---- aggregator side ------------------------------------------------------------------------ */

struct nt_node_secrets;

/* A secret a line, in hex; # begins a comment. -EINVAL names the line, not its content. */
NT_MUST_CHECK int nt_node_secrets_read(const char *path, struct nt_node_secrets **ret_secrets,
				       struct nt_node_key_error *ret_error);
NT_MUST_CHECK int nt_node_secrets_parse(const char *text, size_t len,
					struct nt_node_secrets **ret_secrets,
					struct nt_node_key_error *ret_error);
void nt_node_secrets_free(struct nt_node_secrets *secrets);
NT_DEFINE_AUTO(nt_node_secrets, nt_node_secrets_free)

/* The key of a node, from the first secret. Thread-safe. */
NT_MUST_CHECK int nt_node_secrets_derive(const struct nt_node_secrets *secrets, const char *node,
					 struct nt_node_key *ret_key);

enum nt_signed {
	NT_SIGNED_VALID,
	NT_SIGNED_MISSING,
	NT_SIGNED_UNKNOWN, /* of a secret that is not in the file */
	NT_SIGNED_WRONG,
	NT_SIGNED_END,
};

/* Checks the signature of the record against the key of that node. Thread-safe. */
enum nt_signed nt_node_secrets_verify(const struct nt_node_secrets *secrets, const char *node,
				      const struct nt_bus_record *record);

/* How an aggregator treats signatures. */
enum nt_signing {
	NT_SIGNING_OFF, /* not checked */
	NT_SIGNING_ACCEPT, /* a wrong one is rejected, a missing one accepted: for roll-out */
	NT_SIGNING_REQUIRE,
};

struct nt_signing_policy {
	uint32_t mode; /* enum nt_signing */
	const struct nt_node_secrets *secrets; /* NULL: off */
};

#endif
