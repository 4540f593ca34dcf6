import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.DataInputStream;
import java.io.DataOutputStream;
import java.io.EOFException;
import java.io.IOException;
import java.io.OutputStream;
import java.io.PrintStream;
import java.lang.reflect.InvocationTargetException;
import java.net.URL;
import java.net.URLClassLoader;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import org.apache.kafka.common.utils.Exit;

/**
 * Runs main methods one after the other, so that a tool does not wait for a Java machine to start.
 *
 * A request is a count and as many byte strings: the class, its jars, what is typed, and the arguments;
 * the answer is the exit code and what was printed to both outputs. The class and all others of its
 * jars are loaded anew each time, so that no run sees what another one left in static fields.
 */
public class WarmTools {
    /** Ends a run as System.exit ends a process. */
    static class Ended extends Error {
        Ended() {
            super(null, null, false, false);
        }
    }

    /** What System.out and System.err are: loggers keep them, so the place behind them changes. */
    static class Output extends OutputStream {
        private ByteArrayOutputStream printed = new ByteArrayOutputStream();
        private boolean isOver;

        @Override
        public synchronized void write(int one) {
            write(new byte[] {(byte) one}, 0, 1);
        }

        @Override
        public synchronized void write(byte[] bytes, int offset, int length) {
            if (!isOver) {
                printed.write(bytes, offset, length);
            }
        }

        synchronized void end() {
            isOver = true;
        }

        synchronized byte[] take() {
            byte[] taken = printed.toByteArray();
            printed = new ByteArrayOutputStream();
            isOver = false;
            return taken;
        }
    }

    /** How the run has ended, if it has: a tool that catches what is thrown then goes on unheard. */
    static Integer ended;

    static synchronized void end(int code, Output... outputs) {
        if (ended == null) {
            ended = code;
            for (Output output : outputs) {
                output.end();
            }
        }
        throw new Ended();
    }

    public static void main(String[] arguments) throws Exception {
        DataInputStream requests = new DataInputStream(System.in);
        DataOutputStream answers = new DataOutputStream(System.out);
        Output out = new Output();
        Output err = new Output();
        System.setOut(new PrintStream(out, true, StandardCharsets.UTF_8));
        System.setErr(new PrintStream(err, true, StandardCharsets.UTF_8));
        List<Runnable> hooks = new ArrayList<>();
        Exit.setShutdownHookAdder((name, hook) -> hooks.add(hook));
        Exit.setExitProcedure((code, message) -> end(code, out, err));
        Exit.setHaltProcedure((code, message) -> end(code, out, err));
        while (true) {
            List<byte[]> words = new ArrayList<>();
            try {
                for (int count = requests.readInt(); count > 0; count--) {
                    words.add(requests.readNBytes(requests.readInt()));
                }
            } catch (EOFException ended) {
                Runtime.getRuntime().halt(0);
            }
            System.setIn(new ByteArrayInputStream(words.get(2)));
            ended = null;
            int code = run(words);
            for (Runnable hook : hooks) {
                hook.run();
            }
            hooks.clear();
            answers.writeInt(ended == null ? code : ended);
            for (byte[] printed : List.of(out.take(), err.take())) {
                answers.writeInt(printed.length);
                answers.write(printed);
            }
            answers.flush();
        }
    }

    static int run(List<byte[]> words) throws IOException {
        List<String> texts = words.stream().map(word -> new String(word, StandardCharsets.UTF_8)).toList();
        List<URL> jars = new ArrayList<>();
        for (String jar : texts.get(1).split(":")) {
            jars.add(Path.of(jar).toUri().toURL());
        }
        try (URLClassLoader loader = new URLClassLoader(jars.toArray(URL[]::new))) {
            Thread.currentThread().setContextClassLoader(loader);
            String[] arguments = texts.subList(3, texts.size()).toArray(String[]::new);
            loader.loadClass(texts.get(0)).getMethod("main", String[].class).invoke(null, (Object) arguments);
            return 0;
        } catch (InvocationTargetException thrown) {
            System.err.print("Exception in thread \"main\" ");
            thrown.getCause().printStackTrace();
            return 1;
        } catch (ReflectiveOperationException missing) {
            missing.printStackTrace();
            return 1;
        }
    }
}
