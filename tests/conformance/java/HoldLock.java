import java.nio.channels.FileChannel;
import java.nio.channels.FileLock;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;

/** Tries to lock a file as Java programs do, says whether it could, and holds it until its input ends. */
public class HoldLock {
    public static void main(String[] arguments) throws Exception {
        try (FileChannel channel = FileChannel.open(
                Path.of(arguments[0]), StandardOpenOption.CREATE, StandardOpenOption.READ, StandardOpenOption.WRITE)) {
            FileLock lock = channel.tryLock();
            System.out.println(lock == null ? "refused" : "locked");
            System.in.read();
        }
    }
}
