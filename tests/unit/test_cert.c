/* SPDX-License-Identifier: Apache-2.0 */
/* Certificates: what is made says what was wished, and is believed only where
 * it should be. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
/* cmocka wants the four above. */
#include <cmocka.h>

#include "base/error.h"
#include "cert/cert.h"

#define NOW 1800000000
#define DAY (24 * 3600)

static const char *const addresses[] = {"192.0.2.1", "2001:db8::7",
					"memory.example"};

static struct cert_pair make_authority(const char *name)
{
	const struct cert_wish w = {.name = name, .days = 100, .now = NOW};
	struct cert_pair p = {0};

	assert_int_equal(cert_authority_make(&w, &p), 0);
	return p;
}

static void a_certificate_says_what_was_wished(void **state)
{
	const struct cert_wish w = {.name = "m0",
				    .address = addresses,
				    .address_count = 3,
				    .days = 30,
				    .now = NOW};
	struct cert_pair ca = make_authority("rack-authority"), p = {0};
	struct cert_facts f;

	assert_int_equal(cert_describe(ca.cert, &f), 0);
	assert_string_equal(f.subject, "CN=rack-authority");
	assert_string_equal(f.issuer, f.subject);
	assert_true(f.is_authority);
	assert_int_equal(cert_issue(&ca, &w, &p), 0);
	assert_int_equal(cert_describe(p.cert, &f), 0);
	assert_string_equal(f.subject, "CN=m0");
	assert_string_equal(f.issuer, "CN=rack-authority");
	assert_false(f.is_authority);
	assert_int_equal(f.name_count, 4);
	assert_string_equal(f.names[0], "m0");
	assert_string_equal(f.names[1], "192.0.2.1");
	assert_string_equal(f.names[2], "2001:db8::7");
	assert_string_equal(f.names[3], "memory.example");
	assert_true(f.not_before < NOW);
	assert_int_equal(f.not_after, NOW + 30 * DAY);
	assert_int_equal(strlen(f.print), 64);
	assert_non_null(strstr(p.key, "BEGIN PRIVATE KEY"));
	cert_pair_release(&p);
	cert_pair_release(&ca);
	assert_null(ca.key);
}

static void it_is_believed_from_its_authority_and_in_its_time(void **state)
{
	const struct cert_wish w = {.name = "m0", .days = 30, .now = NOW};
	struct cert_pair ca = make_authority("a"), other = make_authority("a");
	struct cert_pair p = {0}, q = {0};

	assert_int_equal(cert_issue(&ca, &w, &p), 0);
	assert_int_equal(cert_check(p.cert, ca.cert, NOW), 0);
	assert_int_equal(cert_check(p.cert, ca.cert, NOW + 29 * DAY), 0);
	assert_int_equal(cert_check(p.cert, ca.cert, NOW + 31 * DAY), -EINVAL);
	assert_int_equal(cert_check(p.cert, ca.cert, NOW - DAY), -EINVAL);
	/* The same name, another key. */
	assert_int_equal(cert_check(p.cert, other.cert, NOW), -EINVAL);
	/* No two are the same. */
	assert_int_equal(cert_issue(&ca, &w, &q), 0);
	assert_string_not_equal(p.cert, q.cert);
	assert_string_not_equal(p.key, q.key);
	cert_pair_release(&q);
	/* What is no authority signs nothing. */
	assert_int_equal(cert_issue(&p, &w, &q), -EINVAL);
	assert_non_null(strstr(error_last(), "no authority"));
	/* Nor does one with another's key. */
	assert_int_equal(
		cert_issue(&(struct cert_pair){ca.cert, other.key}, &w, &q),
		-EINVAL);
	assert_non_null(strstr(error_last(), "does not belong"));
	cert_pair_release(&p);
	cert_pair_release(&ca);
	cert_pair_release(&other);
}

static void wrong_wishes_are_named(void **state)
{
	static const char *const bad[] = {"a b", "-x", "300.1.1.1/8", ""};
	struct cert_pair ca = make_authority("a"), p = {0};
	struct cert_wish w = {.name = "m0", .days = 101, .now = NOW};

	assert_int_equal(cert_issue(&ca, &w, &p), -EINVAL);
	assert_non_null(strstr(error_last(), "ends before"));
	w.days = 0;
	assert_int_equal(cert_issue(&ca, &w, &p), -EINVAL);
	w.days = CERT_DAYS_MAX + 1;
	assert_int_equal(cert_authority_make(&w, &p), -EINVAL);
	w.days = 1;
	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		w.name = bad[i];
		assert_int_equal(cert_issue(&ca, &w, &p), -EINVAL);
		w.name = "m0";
		w.address = &bad[i];
		w.address_count = 1;
		assert_int_equal(cert_issue(&ca, &w, &p), -EINVAL);
		w.address_count = 0;
	}
	w.address = addresses;
	w.address_count = CERT_ADDRESSES_MAX + 1;
	assert_int_equal(cert_issue(&ca, &w, &p), -EINVAL);
	cert_pair_release(&ca);
}

static void rubbish_is_no_certificate(void **state)
{
	static const char *const bad[] = {
		"", "x", "-----BEGIN CERTIFICATE-----\n",
		"-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----"
		"\n"};
	const struct cert_wish w = {.name = "m0", .days = 1, .now = NOW};
	struct cert_pair ca = make_authority("a"), p = {0};
	struct cert_facts f;

	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		char text[128];

		strcpy(text, bad[i]);
		assert_int_equal(cert_describe(bad[i], &f), -EINVAL);
		assert_int_equal(
			cert_issue(&(struct cert_pair){text, ca.key}, &w, &p),
			-EINVAL);
		assert_int_equal(
			cert_issue(&(struct cert_pair){ca.cert, text}, &w, &p),
			-EINVAL);
		assert_int_equal(cert_check(bad[i], ca.cert, NOW), -EINVAL);
		assert_int_equal(cert_check(ca.cert, bad[i], NOW), -EINVAL);
	}
	cert_pair_release(&ca);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_certificate_says_what_was_wished),
		cmocka_unit_test(
			it_is_believed_from_its_authority_and_in_its_time),
		cmocka_unit_test(wrong_wishes_are_named),
		cmocka_unit_test(rubbish_is_no_certificate),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
