/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "common/bus/kafka/credentials.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#include "common/system/file.h"

enum {
	MAX_PASSWORD = 4096,
	PASSWORD_ROOM = 4 * MAX_PASSWORD, /* so that it is not reallocated, leaving copies */
	TEXT = 512, /* of the library, when it rejects a setting */
};

static const char *const option_of[NT_KAFKA_SECRETS] = {"bus-ca-file", "bus-cert-file",
							"bus-key-file", "bus-password-file"};

static const char *const mechanisms[] = {
	[NT_BUS_SCRAM_SHA_512] = "SCRAM-SHA-512",
	[NT_BUS_SCRAM_SHA_256] = "SCRAM-SHA-256",
	[NT_BUS_PLAIN] = "PLAIN",
};

/* The text of a contradictory combination, or NULL. */
static const char *find_fault(const struct nt_bus_security *security)
{
	if ((security->cert_file || security->key_file) && !security->ca_file)
		return "a certificate (bus-cert-file) needs TLS: set bus-ca-file";
	if (!security->cert_file != !security->key_file)
		return "bus-cert-file and bus-key-file go together";
	if (!security->user != !security->password_file)
		return "bus-user and bus-password-file go together";
	if (security->mechanism >= sizeof(mechanisms) / sizeof(mechanisms[0]))
		return "unknown SASL mechanism";
	if (security->user && security->mechanism == NT_BUS_PLAIN && !security->ca_file)
		return "the mechanism PLAIN shows the password to the network: set bus-ca-file";
	return NULL;
}

int nt_kafka_credentials_init(struct nt_kafka_credentials *secrets,
			      const struct nt_bus_security *security, struct nt_bus_error *error)
{
	const char *const paths[NT_KAFKA_SECRETS] = {security->ca_file, security->cert_file,
						     security->key_file, security->password_file};
	const char *fault = find_fault(security);

	memset(secrets, 0, sizeof(*secrets));
	if (fault) {
		(void)snprintf(error->text, sizeof(error->text), "%s", fault);
		return -EINVAL;
	}
	secrets->mechanism = security->mechanism;
	for (int i = 0; i < NT_KAFKA_SECRETS; i++) {
		if (!paths[i])
			continue;
		secrets->path[i] = strdup(paths[i]);
		if (!secrets->path[i])
			return -ENOMEM;
	}
	if (security->user) {
		secrets->user = strdup(security->user);
		if (!secrets->user)
			return -ENOMEM;
	}
	return 0;
}

void nt_kafka_credentials_release(struct nt_kafka_credentials *secrets)
{
	for (int i = 0; i < NT_KAFKA_SECRETS; i++)
		free(secrets->path[i]);
	free(secrets->user);
	memset(secrets, 0, sizeof(*secrets));
}

static int set(rd_kafka_conf_t *conf, const char *name, const char *value,
	       struct nt_bus_error *error)
{
	char text[TEXT];

	if (rd_kafka_conf_set(conf, name, value, text, sizeof(text)) == RD_KAFKA_CONF_OK)
		return 0;
	/* The library's text may quote the value. */
	(void)snprintf(error->text, sizeof(error->text), "the library refuses '%s'", name);
	return -EINVAL;
}

/* Sets the password from the first line of the file, and leaves no copy in memory. */
static int set_password(const struct nt_kafka_credentials *secrets, rd_kafka_conf_t *conf,
			struct nt_bus_error *error)
{
	const char *path = secrets->path[NT_KAFKA_PASSWORD];
	nt_autobuf struct nt_buf buf = {.max = PASSWORD_ROOM};
	size_t len;
	int r = nt_buf_reserve(&buf, PASSWORD_ROOM);

	if (r == 0)
		r = nt_file_read(path, MAX_PASSWORD, &buf);
	if (r < 0) {
		if (buf.data)
			explicit_bzero(buf.data, buf.cap);
		(void)snprintf(error->text, sizeof(error->text),
			       "read bus-password-file '%.160s': %s", path, strerrordesc_np(-r));
		return r;
	}
	len = buf.len;
	while (len && (buf.data[len - 1] == '\n' || buf.data[len - 1] == '\r'))
		len--;
	if (len == 0 || memchr(buf.data, '\0', len) || memchr(buf.data, '\n', len)) {
		(void)snprintf(error->text, sizeof(error->text),
			       "bus-password-file '%.160s' must hold one line", path);
		r = -EINVAL;
	} else {
		buf.data[len] = '\0';
		r = set(conf, "sasl.password", (const char *)buf.data, error);
	}
	explicit_bzero(buf.data, buf.cap);
	return r;
}

static int check_file(const char *option, const char *path, struct stat *stamp,
		      struct nt_bus_error *error)
{
	nt_autoclose int fd = open(path, O_RDONLY | O_CLOEXEC);

	if (fd >= 0 && fstat(fd, stamp) == 0)
		return 0;
	(void)snprintf(error->text, sizeof(error->text), "read %s '%.160s': %s", option, path,
		       strerrordesc_np(errno));
	return -errno;
}

int nt_kafka_credentials_apply(struct nt_kafka_credentials *secrets, rd_kafka_conf_t *conf,
			       struct nt_bus_error *error)
{
	static const char *const names[NT_KAFKA_PASSWORD] = {
		"ssl.ca.location", "ssl.certificate.location", "ssl.key.location"};
	static const char *const protocols[2][2] = {{"plaintext", "ssl"},
						    {"sasl_plaintext", "sasl_ssl"}};
	bool is_tls = secrets->path[NT_KAFKA_CA], is_sasl = secrets->user;
	int r = set(conf, "security.protocol", protocols[is_sasl][is_tls], error);

	for (int i = 0; i < NT_KAFKA_SECRETS && r == 0; i++)
		if (secrets->path[i])
			r = check_file(option_of[i], secrets->path[i], &secrets->stamp[i], error);
	for (int i = 0; i < NT_KAFKA_PASSWORD && r == 0; i++)
		if (secrets->path[i])
			r = set(conf, names[i], secrets->path[i], error);
	if (!is_sasl || r < 0)
		return r;
	r = set(conf, "sasl.mechanism", mechanisms[secrets->mechanism], error);
	if (r == 0)
		r = set(conf, "sasl.username", secrets->user, error);
	return r == 0 ? set_password(secrets, conf, error) : r;
}

bool nt_kafka_credentials_have_changed(const struct nt_kafka_credentials *secrets)
{
	for (int i = 0; i < NT_KAFKA_SECRETS; i++) {
		const struct stat *old = &secrets->stamp[i];
		struct stat now;

		if (!secrets->path[i] || stat(secrets->path[i], &now) < 0)
			continue;
		if (now.st_dev != old->st_dev || now.st_ino != old->st_ino ||
		    now.st_size != old->st_size || now.st_mtim.tv_sec != old->st_mtim.tv_sec ||
		    now.st_mtim.tv_nsec != old->st_mtim.tv_nsec)
			return true;
	}
	return false;
}
