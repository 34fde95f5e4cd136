/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "common/bus/kafka/client.h"

#include <errno.h>
#include <openssl/sslerr.h>
#include <stdio.h>
#include <string.h>

#include "common/bus/kafka/cause.h"
#include "common/system/clock.h"

enum {
	TEXT = 512, /* of the library */
	MAX_LEFT_BEHIND = 16, /* each has its threads and connections */
};

#define LOOK_NS (5 * NT_SECOND)

static const struct {
	const char *name, *value;
} basics[] = {
	/* A mistyped name must not create a topic. */
	{"allow.auto.create.topics", "false"},
	/* Detects connections dropped silently by a firewall. */
	{"socket.keepalive.enable", "true"},
	{"socket.nagle.disable", "true"},
	{"socket.timeout.ms", "20000"},
	{"socket.connection.setup.timeout.ms", "10000"},
	{"reconnect.backoff.max.ms", "10000"},
	{"log.connection.close", "false"},
	{"ssl.endpoint.identification.algorithm", "https"},
};

int nt_kafka_client_init(struct nt_kafka_client *client, const char *url,
			 const struct nt_bus_options *options)
{
	struct nt_bus_error error = {0};
	int r;

	memset(client, 0, sizeof(*client));
	nt_kafka_health_init(&client->health);
	(void)pthread_mutex_init(&client->lock, NULL);
	r = nt_kafka_url_parse(url, strlen(url), &client->url);
	if (r < 0)
		(void)snprintf(error.text, sizeof(error.text),
			       "the url must be kafka://HOST:PORT[,HOST:PORT...][/PREFIX]");
	else
		r = nt_kafka_credentials_init(&client->secrets, &options->security, &error);
	if (r < 0) {
		if (options->error)
			*options->error = error;
		return r;
	}
	client->name = strdup(options->client ? options->client : "neutracer");
	client->shared = nt_kafka_shared_new();
	return client->name && client->shared ? 0 : -ENOMEM;
}

void nt_kafka_client_release(struct nt_kafka_client *client)
{
	nt_kafka_credentials_release(&client->secrets);
	nt_kafka_health_release(&client->health);
	(void)pthread_mutex_destroy(&client->lock);
	nt_kafka_shared_unref(client->shared);
	free(client->name);
}

/* Relevant failures arrive as errors; log lines of the library are dropped. */
static void drop_log(const rd_kafka_t *rk, int level, const char *facility, const char *text)
{
	(void)rk;
	(void)level;
	(void)facility;
	(void)text;
}

/* Keeps OpenSSL's result. The reason is available only here, on a thread of the library. */
static int verify_certificate(rd_kafka_t *rk, const char *broker, int32_t broker_id,
			      int *x509_error, int depth, const char *der, size_t der_size,
			      char *text, size_t text_size, void *opaque)
{
	struct nt_kafka_shared *shared = nt_kafka_opaque_shared(opaque);
	const char *reason;

	(void)rk;
	(void)broker;
	(void)broker_id;
	(void)depth;
	(void)der;
	(void)der_size;
	if (*x509_error == 0)
		return 1;
	reason = nt_kafka_certificate_reason(*x509_error);
	atomic_store(&shared->certificate_reason, reason);
	(void)snprintf(text, text_size, "%s", reason);
	return 0;
}

static int set(rd_kafka_conf_t *conf, const char *name, const char *value, bool may_be_unknown,
	       struct nt_bus_error *error)
{
	char text[TEXT];
	rd_kafka_conf_res_t r = rd_kafka_conf_set(conf, name, value, text, sizeof(text));

	if (r == RD_KAFKA_CONF_OK || (r == RD_KAFKA_CONF_UNKNOWN && may_be_unknown))
		return 0;
	(void)snprintf(error->text, sizeof(error->text),
		       "the library refuses '%s' = '%.64s': %.160s", name, value, text);
	return -EINVAL;
}

static int configure(struct nt_kafka_client *client, rd_kafka_conf_t *conf,
		     const struct nt_kafka_setting *settings, size_t count,
		     struct nt_bus_error *error)
{
	int r = set(conf, "bootstrap.servers", client->url.servers, false, error);

	if (r == 0)
		r = set(conf, "client.id", client->name, false, error);
	for (size_t i = 0; i < sizeof(basics) / sizeof(basics[0]) && r == 0; i++)
		r = set(conf, basics[i].name, basics[i].value, false, error);
	for (size_t i = 0; i < count && r == 0; i++) {
		char number[24];

		(void)snprintf(number, sizeof(number), "%llu",
			       (unsigned long long)settings[i].number);
		r = set(conf, settings[i].name, settings[i].text ? settings[i].text : number,
			settings[i].may_be_unknown, error);
	}
	if (r == 0)
		r = nt_kafka_credentials_apply(&client->secrets, conf, error);
	if (r < 0)
		return r;
	rd_kafka_conf_set_log_cb(conf, drop_log);
	if (client->secrets.path[NT_KAFKA_CA] &&
	    rd_kafka_conf_set_ssl_cert_verify_cb(conf, verify_certificate) != RD_KAFKA_CONF_OK) {
		(void)snprintf(error->text, sizeof(error->text),
			       "the Kafka library of this machine was built without TLS");
		return -EINVAL;
	}
	return 0;
}

int nt_kafka_client_make(struct nt_kafka_client *client, rd_kafka_type_t type, int events,
			 const struct nt_kafka_setting *settings, size_t count,
			 struct nt_bus_error *error, rd_kafka_t **ret_rk)
{
	char text[TEXT] = "";
	struct nt_kafka_opaque *opaque;
	rd_kafka_conf_t *conf;
	rd_kafka_t *rk;
	int r;

	if (nt_kafka_left_behind() >= MAX_LEFT_BEHIND) {
		(void)snprintf(error->text, sizeof(error->text),
			       "%d earlier clients of the Kafka library do not end: restart this "
			       "program",
			       MAX_LEFT_BEHIND);
		return -EBUSY;
	}
	conf = rd_kafka_conf_new();
	(void)pthread_mutex_lock(&client->lock);
	r = configure(client, conf, settings, count, error);
	client->look_mono_ns = nt_clock_mono_ns() + LOOK_NS;
	(void)pthread_mutex_unlock(&client->lock);

	if (r < 0) {
		rd_kafka_conf_destroy(conf);
		return r;
	}
	opaque = nt_kafka_opaque_new(client->shared);
	if (!opaque) {
		rd_kafka_conf_destroy(conf);
		return -ENOMEM;
	}
	rd_kafka_conf_set_opaque(conf, opaque);
	rd_kafka_conf_set_events(conf, events);
	/* Owns conf on success. */
	rk = rd_kafka_new(type, conf, text, sizeof(text));
	if (!rk) {
		nt_kafka_opaque_free(opaque);
		rd_kafka_conf_destroy(conf);
		(void)snprintf(error->text, sizeof(error->text), "%.300s", text);
		return -EINVAL;
	}
	*ret_rk = rk;
	return 0;
}

bool nt_kafka_client_is_stale(struct nt_kafka_client *client)
{
	uint64_t now_ns = nt_clock_mono_ns();
	bool yes = false;

	(void)pthread_mutex_lock(&client->lock);
	if (now_ns >= client->look_mono_ns) {
		client->look_mono_ns = now_ns + LOOK_NS;
		yes = nt_kafka_credentials_have_changed(&client->secrets);
	}
	(void)pthread_mutex_unlock(&client->lock);
	return yes;
}

/*
 * Before 2.6.1 the library repeats a part of the nonce, which brokers from 4.0 on reject
 * (CVE-2024-56128); they report a wrong password.
 */
static const char old_scram[] =
	" (or they are Kafka 4, with which this machine's librdkafka cannot "
	"do SCRAM: 2.6.1 can)";

static bool scram_may_fail(const struct nt_kafka_client *client)
{
	return client->secrets.mechanism != NT_BUS_PLAIN && rd_kafka_version() < 0x020601ff;
}

static void note_certificate(struct nt_kafka_client *client, const char *reason)
{
	const char *refusal = atomic_load(&client->shared->certificate_reason);
	const int tls_error = nt_kafka_tls_error(reason);

	if (refusal && tls_error == SSL_R_CERTIFICATE_VERIFY_FAILED)
		nt_kafka_health_fail(&client->health, NT_BUS_CERTIFICATE,
				     "no TLS with the brokers: their certificate is refused: %s",
				     refusal);
	else if (nt_kafka_is_certificate_alert(tls_error))
		nt_kafka_health_fail(
			&client->health, NT_BUS_CERTIFICATE,
			"no TLS with the brokers: they refuse the client certificate "
			"(bus-cert-file: is it set, valid now, and signed by a CA that they "
			"trust?): %s",
			reason);
	else
		nt_kafka_health_fail(&client->health, NT_BUS_CERTIFICATE,
				     "no TLS with the brokers: %s", reason);
}

/* Cuts the library's prefix "sasl_ssl://host:9093/bootstrap: ", which takes too much room. */
enum nt_bus_cause nt_kafka_client_note(struct nt_kafka_client *client, rd_kafka_resp_err_t error,
				       const char *reason, const char *what)
{
	struct nt_kafka_health *health = &client->health;
	enum nt_bus_cause cause = nt_kafka_cause(error, reason);
	const char *servers = client->url.servers;

	if (!reason)
		reason = rd_kafka_err2str(error);
	switch (cause) {
	case NT_BUS_WELL:
	case NT_BUS_CONNECTING:
	case NT_BUS_CAUSE_END:
		break;
	case NT_BUS_UNREACHABLE:
		if (error == RD_KAFKA_RESP_ERR__ALL_BROKERS_DOWN)
			nt_kafka_health_alone(health, servers);
		else if (nt_kafka_is_of_one_broker(error) ||
			 error == RD_KAFKA_RESP_ERR__AUTHENTICATION)
			nt_kafka_health_hint(health, cause, "no broker answers at %.100s: %s",
					     servers, reason);
		else
			nt_kafka_health_fail(health, cause,
					     "the brokers cannot serve the client: %s", reason);
		break;
	case NT_BUS_REFUSED:
		nt_kafka_health_fail(health, cause, "the brokers refuse the user '%.64s'%s: %s",
				     client->secrets.user ? client->secrets.user : "",
				     scram_may_fail(client) ? old_scram : "", reason);
		break;
	case NT_BUS_CERTIFICATE:
		note_certificate(client, reason);
		break;
	case NT_BUS_DENIED:
		nt_kafka_health_fail(health, cause, "not allowed%s%s: %s", what ? " on " : "",
				     what ? what : "", reason);
		break;
	case NT_BUS_NO_TOPIC:
		nt_kafka_health_fail(health, cause,
				     "there is no %s: 'neutracer topics create' creates it",
				     what ? what : "such topic");
		break;
	case NT_BUS_TOO_LARGE:
		nt_kafka_health_fail(health, cause,
				     "a message is too large for %s: 'neutracer topics check' "
				     "prints the max.message.bytes that it needs",
				     what ? what : "its topic");
		break;
	case NT_BUS_TIMED_OUT:
		nt_kafka_health_fail(health, cause,
				     "%s%sthe brokers do not acknowledge in time: %s",
				     what ? what : "", what ? ": " : "", reason);
		break;
	case NT_BUS_FENCED:
		nt_kafka_health_fail(health, cause,
				     "another member of the group has the same name: %s", reason);
		break;
	case NT_BUS_FAILED:
		nt_kafka_health_fail(health, cause, "%s%s%s", what ? what : "", what ? ": " : "",
				     reason);
		break;
	}
	return cause;
}
