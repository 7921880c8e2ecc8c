/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A plain POSIX program, written for one machine: a server of keys and values,
 * and clients that leave a request in shared memory and sleep until it is
 * answered. With Aquifer they may be on several machines (aquifer-run(1)), each
 * below `aquifer run --shared demo --`:
 *
 *	kv_server serve, kv_server put KEY VALUE, kv_server get KEY,
 *	kv_server fill COUNT (keys, and the sum of their values), kv_server end
 */
#include <fcntl.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum {
	TEXT = 56,
	ENTRIES = 4096 /* the last one stays empty */
};

struct desk {
	sem_t is_free, is_asked, is_answered;
	_Atomic int is_ready;
	char verb, key[TEXT], value[TEXT]; /* of one request at a time */
};

static void serve(struct desk *d)
{
	static char key[ENTRIES][TEXT], value[ENTRIES][TEXT];
	char verb;

	sem_init(&d->is_free, 1, 1);
	sem_init(&d->is_asked, 1, 0);
	sem_init(&d->is_answered, 1, 0);
	d->is_ready = 1;
	do {
		int i = 0;

		sem_wait(&d->is_asked);
		verb = d->verb;
		while (i < ENTRIES - 1 && key[i][0] && strcmp(key[i], d->key))
			i++;
		if (verb == 'p' && i < ENTRIES - 1) {
			strcpy(key[i], d->key);
			strcpy(value[i], d->value);
		}
		strcpy(d->value, value[i]);
		sem_post(&d->is_answered);
	} while (verb != 'e');
}

static long ask(struct desk *d, char verb, const char *key, char value[TEXT])
{
	sem_wait(&d->is_free);
	d->verb = verb;
	snprintf(d->key, TEXT, "%s", key);
	strcpy(d->value, value);
	sem_post(&d->is_asked);
	sem_wait(&d->is_answered);
	strcpy(value, d->value);
	sem_post(&d->is_free);
	return atol(value);
}

int main(int argc, char **argv)
{
	char verb = argc > 1 ? argv[1][0] : 's', key[TEXT], value[TEXT] = "";
	int fd = shm_open("/desk", O_RDWR | (verb == 's' ? O_CREAT : 0), 0600);
	struct desk *d = MAP_FAILED;
	long sum = 0;

	if (fd >= 0 && (verb != 's' || ftruncate(fd, sizeof(*d)) == 0))
		d = mmap(NULL, sizeof(*d), PROT_READ | PROT_WRITE, MAP_SHARED,
			 fd, 0);
	if (d == MAP_FAILED)
		return perror("kv_server"), 1;
	if (verb == 's')
		return serve(d), 0;
	while (!d->is_ready)
		usleep(1000);
	for (long i = 0; verb == 'f' && argc > 2 && i < atol(argv[2]); i++) {
		snprintf(key, TEXT, "%ld", i);
		snprintf(value, TEXT, "%ld", 3 * i);
		ask(d, 'p', key, value);
		sum += ask(d, 'g', key, value);
	}
	snprintf(value, TEXT, "%s", argc > 3 ? argv[3] : "");
	if (verb != 'f')
		ask(d, verb, argc > 2 ? argv[2] : "", value);
	else
		snprintf(value, TEXT, "%ld", sum);
	printf("%s\n", value);
	return verb == 'e' ? shm_unlink("/desk") != 0 : 0;
}
