/*
 * Starts a program as AFL++ does, with a map in shared memory, and prints the number of edges in it.
 *
 *	afl STATUS SHOWMAP COMMAND [ARGUMENT...]
 */
#include <stdio.h>
#include <stdlib.h>
#include <sys/ipc.h>
#include <sys/shm.h>
#include <sys/wait.h>
#include <unistd.h>

int main(int argc, char **argv)
{
	static const char *const sizes[] = {"65536", "8192"};
	char text[16];
	int turn, id, status;
	size_t i, edges, room;
	const unsigned char *map;

	for (turn = 0; turn < 2 && argc > 3; turn++) {
		room = strtoul(sizes[turn], NULL, 10);
		/* The rest of the larger map must stay empty. */
		id = shmget(IPC_PRIVATE, 65536, IPC_CREAT | 0600);
		map = (const unsigned char *)shmat(id, NULL, 0);
		snprintf(text, sizeof(text), "%d", id);
		setenv("__AFL_SHM_ID", text, 1);
		setenv("AFL_MAP_SIZE", sizes[turn], 1);
		if (!fork()) {
			execv(argv[2], argv + 2);
			_exit(99);
		}
		if (wait(&status) < 0 || !WIFEXITED(status) || WEXITSTATUS(status) != atoi(argv[1]))
			return 1;
		for (i = 0, edges = 0; i < 65536; i++) {
			edges += map[i] != 0;
			if (map[i] && i >= room)
				return 2;
		}
		printf("%zu\n", edges);
	}
	return 0;
}
