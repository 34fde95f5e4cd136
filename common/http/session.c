/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "common/http/session.h"

#include <errno.h>
#include <openssl/crypto.h>
#include <openssl/sha.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>

#define CSRF_PURPOSE "neutracer-csrf:"

void nt_sessions_init(struct nt_sessions *sessions)
{
	memset(sessions, 0, sizeof(*sessions));
	pthread_mutex_init(&sessions->lock, NULL);
}

void nt_sessions_destroy(struct nt_sessions *sessions)
{
	pthread_mutex_destroy(&sessions->lock);
}

static void write_hex(const unsigned char bytes[NT_SESSION_SUM_BYTES],
		      char text[NT_SESSION_TEXT_BYTES])
{
	for (size_t i = 0; i < NT_SESSION_SUM_BYTES; i++)
		(void)snprintf(text + 2 * i, 3, "%02x", bytes[i]);
}

static void drop(struct nt_sessions *sessions, size_t i)
{
	size_t last = (size_t)--sessions->stats.now;

	sessions->slot[i] = sessions->slot[last];
	memset(&sessions->slot[last], 0, sizeof(sessions->slot[last]));
}

static void drop_expired(struct nt_sessions *sessions, uint64_t mono_ns)
{
	for (size_t i = 0; i < sessions->stats.now;) {
		/* Another thread may have used it since this one read the clock. */
		if (mono_ns < sessions->slot[i].session.expires_ns &&
		    mono_ns < sessions->slot[i].used_ns + NT_SESSION_IDLE_NS) {
			i++;
			continue;
		}
		drop(sessions, i);
		sessions->stats.expired++;
	}
}

static bool have_one_token(const struct nt_session *one, const struct nt_session *other)
{
	return !memcmp(one->token_sum, other->token_sum, NT_SESSION_SUM_BYTES);
}

/* Otherwise the holder of one token could end the sessions of all others. */
static void evict(struct nt_sessions *sessions)
{
	size_t worst = 0, most = 0;

	for (size_t i = 0; i < sessions->stats.now; i++) {
		size_t count = 0;

		for (size_t j = 0; j < sessions->stats.now; j++)
			count += have_one_token(&sessions->slot[i].session,
						&sessions->slot[j].session);
		if (count < most ||
		    (count == most && sessions->slot[i].used_ns >= sessions->slot[worst].used_ns))
			continue;
		worst = i;
		most = count;
	}
	drop(sessions, worst);
	sessions->stats.evicted++;
}

/* All are compared, in constant time. False: there is no session of this id. */
static bool find(const struct nt_sessions *sessions, const unsigned char *id_sum, size_t *ret_i)
{
	bool found = false;

	for (size_t i = 0; i < sessions->stats.now; i++) {
		if (CRYPTO_memcmp(id_sum, sessions->slot[i].id_sum, NT_SESSION_SUM_BYTES) != 0)
			continue;
		*ret_i = i;
		found = true;
	}
	return found;
}

/* False: it has not the length of an id. */
static bool sum_id(const char *id, size_t len, unsigned char ret_sum[NT_SESSION_SUM_BYTES])
{
	if (len != NT_SESSION_TEXT_BYTES - 1)
		return false;
	SHA256((const unsigned char *)id, len, ret_sum);
	return true;
}

int nt_sessions_begin(struct nt_sessions *sessions,
		      const unsigned char token_sum[NT_SESSION_SUM_BYTES], uint64_t mono_ns,
		      char ret_id[NT_SESSION_TEXT_BYTES], struct nt_session *ret_session)
{
	unsigned char random[NT_SESSION_SUM_BYTES];
	size_t i;

	if (getrandom(random, sizeof(random), 0) != sizeof(random))
		return -EIO;
	write_hex(random, ret_id);
	OPENSSL_cleanse(random, sizeof(random));

	pthread_mutex_lock(&sessions->lock);
	drop_expired(sessions, mono_ns);
	if (sessions->stats.now == NT_SESSION_MAX_COUNT)
		evict(sessions);
	i = (size_t)sessions->stats.now++;
	SHA256((const unsigned char *)ret_id, NT_SESSION_TEXT_BYTES - 1, sessions->slot[i].id_sum);
	memcpy(sessions->slot[i].session.token_sum, token_sum, NT_SESSION_SUM_BYTES);
	sessions->slot[i].session.expires_ns = mono_ns + NT_SESSION_LIFE_NS;
	sessions->slot[i].used_ns = mono_ns;
	*ret_session = sessions->slot[i].session;
	sessions->stats.begun++;
	pthread_mutex_unlock(&sessions->lock);
	return 0;
}

bool nt_sessions_find_sum(struct nt_sessions *sessions,
			  const unsigned char id_sum[NT_SESSION_SUM_BYTES], uint64_t mono_ns,
			  struct nt_session *ret_session)
{
	bool found;
	size_t i;

	pthread_mutex_lock(&sessions->lock);
	drop_expired(sessions, mono_ns);
	found = find(sessions, id_sum, &i);
	if (found) {
		if (sessions->slot[i].used_ns < mono_ns)
			sessions->slot[i].used_ns = mono_ns;
		*ret_session = sessions->slot[i].session;
	}
	pthread_mutex_unlock(&sessions->lock);
	return found;
}

bool nt_sessions_find(struct nt_sessions *sessions, const char *id, size_t len, uint64_t mono_ns,
		      struct nt_session *ret_session)
{
	unsigned char sum[NT_SESSION_SUM_BYTES];

	return sum_id(id, len, sum) && nt_sessions_find_sum(sessions, sum, mono_ns, ret_session);
}

void nt_sessions_end(struct nt_sessions *sessions, const char *id, size_t len)
{
	unsigned char sum[NT_SESSION_SUM_BYTES];
	size_t i;

	if (!sum_id(id, len, sum))
		return;
	pthread_mutex_lock(&sessions->lock);
	if (find(sessions, sum, &i)) {
		drop(sessions, i);
		sessions->stats.ended++;
	}
	pthread_mutex_unlock(&sessions->lock);
}

void nt_sessions_stats(struct nt_sessions *sessions, uint64_t mono_ns,
		       struct nt_sessions_stats *ret_stats)
{
	pthread_mutex_lock(&sessions->lock);
	drop_expired(sessions, mono_ns);
	*ret_stats = sessions->stats;
	pthread_mutex_unlock(&sessions->lock);
}

void nt_session_sum(const char *id, unsigned char ret_sum[NT_SESSION_SUM_BYTES])
{
	(void)sum_id(id, NT_SESSION_TEXT_BYTES - 1, ret_sum);
}

void nt_session_csrf(const char *id, char ret_csrf[NT_SESSION_TEXT_BYTES])
{
	unsigned char sum[NT_SESSION_SUM_BYTES];
	char text[sizeof(CSRF_PURPOSE) + NT_SESSION_TEXT_BYTES];
	int len = snprintf(text, sizeof(text), CSRF_PURPOSE "%.*s", NT_SESSION_TEXT_BYTES - 1, id);

	SHA256((const unsigned char *)text, (size_t)len, sum);
	OPENSSL_cleanse(text, sizeof(text));
	write_hex(sum, ret_csrf);
}

bool nt_session_csrf_matches(const char *id, const char *csrf)
{
	char own[NT_SESSION_TEXT_BYTES];

	nt_session_csrf(id, own);
	return strlen(csrf) == sizeof(own) - 1 && !CRYPTO_memcmp(csrf, own, sizeof(own) - 1);
}
