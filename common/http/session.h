/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Sessions of an HTTP server: a browser exchanges a token for a cookie with a random id of 256 bits.
 * Sessions are in memory only, as SHA-256 sums of their ids. A session expires after 12 h, and after
 * 1 h without a request; an open stream counts as one. At the cap, the token with the most sessions loses the one that was unused
 * for the longest time. All functions are thread-safe. Times are monotonic.
 */
#ifndef NT_COMMON_HTTP_SESSION_H
#define NT_COMMON_HTTP_SESSION_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/cleanup.h"
#include "common/base/duration.h"

enum {
	NT_SESSION_MAX_COUNT = 256,
	NT_SESSION_SUM_BYTES = 32, /* SHA-256, of an id or of a token */
	NT_SESSION_TEXT_BYTES = 65, /* an id or a CSRF token: 64 hex digits and a NUL */
};

#define NT_SESSION_LIFE_NS (12 * NT_HOUR)
#define NT_SESSION_IDLE_NS NT_HOUR

struct nt_session {
	unsigned char token_sum[NT_SESSION_SUM_BYTES]; /* of the token that it was begun with */
	uint64_t expires_ns; /* at the latest */
};

/* What a request was authorized by. A reply that does not end checks it again. */
struct nt_credential {
	unsigned char token_sum[NT_SESSION_SUM_BYTES], session_sum[NT_SESSION_SUM_BYTES];
	bool by_token; /* false: no authorization is configured */
	bool by_session; /* of that token */
};

struct nt_sessions_stats {
	uint64_t now;
	uint64_t begun, ended, expired;
	uint64_t evicted; /* ended in favour of a later one, at the cap */
};

struct nt_sessions {
	pthread_mutex_t lock; /* protects everything below */
	struct {
		unsigned char id_sum[NT_SESSION_SUM_BYTES];
		struct nt_session session;
		uint64_t used_ns;
	} slot[NT_SESSION_MAX_COUNT]; /* the first stats.now are in use */
	struct nt_sessions_stats stats;
};

void nt_sessions_init(struct nt_sessions *sessions);
void nt_sessions_destroy(struct nt_sessions *sessions);

/* Begins a session and returns its id. -EIO: no random bytes. */
NT_MUST_CHECK int nt_sessions_begin(struct nt_sessions *sessions,
				    const unsigned char token_sum[NT_SESSION_SUM_BYTES],
				    uint64_t mono_ns, char ret_id[NT_SESSION_TEXT_BYTES],
				    struct nt_session *ret_session);

/* Whether the id is that of a session, which is then in use until its idle time has passed again. */
bool nt_sessions_find(struct nt_sessions *sessions, const char *id, size_t len, uint64_t mono_ns,
		      struct nt_session *ret_session);

/* The same for a session of which only the sum of its id is known. */
bool nt_sessions_find_sum(struct nt_sessions *sessions,
			  const unsigned char id_sum[NT_SESSION_SUM_BYTES], uint64_t mono_ns,
			  struct nt_session *ret_session);

/* Ends the session, if there is one. */
void nt_sessions_end(struct nt_sessions *sessions, const char *id, size_t len);

void nt_sessions_stats(struct nt_sessions *sessions, uint64_t mono_ns,
		       struct nt_sessions_stats *ret_stats);

/* The sum of an id of the right length. */
void nt_session_sum(const char *id, unsigned char ret_sum[NT_SESSION_SUM_BYTES]);

/*
 * The CSRF token of a session is a hash of its id, so that it need not be kept. It does not disclose
 * the id. The comparison takes constant time.
 */
void nt_session_csrf(const char *id, char ret_csrf[NT_SESSION_TEXT_BYTES]);
bool nt_session_csrf_matches(const char *id, const char *csrf);

#endif
